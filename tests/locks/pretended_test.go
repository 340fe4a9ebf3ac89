package locks_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

// pretended is a SQLite on which locks are pretended.
type pretended struct {
	db *gorm.DB

	mu    sync.Mutex
	taken map[string]int // how often a lock was acquired, by its key
}

func (p *pretended) Observe(_ context.Context, e observe.Event) {
	if e.Kind == observe.Acquired {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken[e.Key]++
	}
}

func (p *pretended) heard(key lockkey.Key) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[key.String()]
}

// count is how often the key was acquired. An observer may hear late, in the order of the events: once it has heard of a
// lock that is taken now, it has heard all before.
func (p *pretended) count(t *testing.T, key lockkey.Key) int {
	t.Helper()
	last := gormlock.Key("last of", t.Name())
	if !isFree(t, p.db, last) {
		t.Fatal("the last lock is held")
	}
	for end := time.Now().Add(20 * time.Second); p.heard(last) == 0 && time.Now().Before(end); {
		runtime.Gosched()
	}
	return p.heard(key)
}

func newPretended(t *testing.T, config *gorm.Config, opts ...gormlock.Option) *pretended {
	t.Helper()
	p := &pretended{taken: map[string]int{}}
	opts = append(opts, gormlock.WithObserver(p))
	p.db = openPretended(t, "file:"+filepath.Join(t.TempDir(), "db")+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)", config, opts...)
	if err := p.db.AutoMigrate(&widgetMaker{}, &widget{}, &widgetPart{}); err != nil {
		t.Fatal(err)
	}
	return p
}

func openPretended(t *testing.T, dsn string, config *gorm.Config, opts ...gormlock.Option) *gorm.DB {
	t.Helper()
	config.Logger = logger.Discard
	db, err := gorm.Open(sqlite.Open(dsn), config)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	plugin := gormlock.New(opts...)
	t.Cleanup(func() { _ = errors.Join(plugin.Close(), pool.Close()) })
	if err := errors.Join(db.Use(plugin), gormlocktest.PretendLocks(db)); err != nil {
		t.Fatal(err)
	}
	return db
}

// isFree reports whether another transaction can have the locks.
func isFree(t *testing.T, db *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) bool {
	t.Helper()
	err := gormlock.Transaction(db.Session(&gorm.Session{NewDB: true}), func(tx *gorm.DB) error {
		return gormlock.AcquireXactLock(tx, []lockkey.Key{key}, append(opts, gormlock.Try())...)
	})
	if err != nil && !errors.Is(err, gormlock.ErrNotAcquired) {
		t.Errorf("whether %s is free: %v", key, err)
	}
	return err == nil
}

func (p *pretended) seed(t *testing.T) *widget {
	t.Helper()
	return seedIn(t, p.db)
}

var pretendedModes = map[string]func() *gorm.Config{
	"default":     func() *gorm.Config { return &gorm.Config{} },
	"PrepareStmt": func() *gorm.Config { return &gorm.Config{PrepareStmt: true} },
}

// TestPretended_conformance: every operation through every door holds the lock from before its first statement to the end of its
// transaction, and is refused where there is none, as on PostgreSQL.
func TestPretended_conformance(t *testing.T) {
	t.Parallel()
	for name, config := range pretendedModes {
		for plugin, opts := range map[string][]gormlock.Option{"journals": nil, "PlainTransactions": {gormlock.PlainTransactions()}} {
			t.Run(name+"/"+plugin, func(t *testing.T) {
				t.Parallel()
				p := newPretended(t, config(), opts...)
				for _, c := range cells() {
					t.Run(c.name, func(t *testing.T) {
						t.Run("implicit", func(t *testing.T) {
							switch {
							case c.reads:
								p.refuses(t, c, p.db, gormlock.ErrNoTransaction)
							case opts != nil && strings.HasSuffix(c.name, "/CreateInBatches"): // in a db.Transaction of GORM's
								p.refuses(t, c, p.db, gormlock.ErrNotPostgres)
							default:
								p.holds(t, c, func(run func(*gorm.DB) error) error { return run(p.db) })
							}
						})
						t.Run("explicit", func(t *testing.T) {
							p.holds(t, c, func(run func(*gorm.DB) error) error {
								if opts == nil {
									return p.db.Transaction(run)
								}
								return gormlock.Transaction(p.db, run)
							})
						})
						t.Run("session without default transaction", func(t *testing.T) {
							p.refuses(t, c, p.db.Session(&gorm.Session{SkipDefaultTransaction: true}), gormlock.ErrNoTransaction)
						})
					})
				}
			})
		}
	}
}

func (p *pretended) holds(t *testing.T, c cell, within func(func(*gorm.DB) error) error) {
	t.Helper()
	w, key := p.seed(t), gormlock.Key(t.Name())
	unheld, seen := p.watch(t, key)
	var ran error
	err := within(func(tx *gorm.DB) error {
		ran = c.run(tx, w, key)
		if _, ok := tx.Statement.ConnPool.(gorm.TxCommitter); ok && isFree(t, p.db, key) {
			t.Error("the lock is gone before the transaction is over")
		}
		return nil
	})
	if err != nil || ran != nil && !errors.Is(ran, errInner) {
		t.Errorf("err = %v, %v", ran, err)
	}
	if unheld.Load() > 0 || seen.Load() == 0 {
		t.Errorf("the lock was not held by %d of %d statements", unheld.Load(), seen.Load())
	}
	if n := p.count(t, key); n != c.locks {
		t.Errorf("%d locks were taken, want %d", n, c.locks)
	}
	if !isFree(t, p.db, key) {
		t.Error("the lock is held after the transaction")
	}
}

// watch looks at the key whenever a statement has been executed.
func (p *pretended) watch(t *testing.T, key lockkey.Key) (unheld, seen *atomic.Int32) {
	t.Helper()
	unheld, seen = &atomic.Int32{}, &atomic.Int32{}
	looking := false
	look := func(db *gorm.DB) {
		if looking || !onWidgets(db.Statement.SQL.String()) {
			return
		}
		looking = true
		seen.Add(1)
		if isFree(t, p.db, key) {
			unheld.Add(1)
		}
		looking = false
	}
	callbacks := p.db.Callback()
	for _, err := range []error{
		callbacks.Create().After("gorm:create").Before("gorm:commit_or_rollback_transaction").Replace("test:look", look), callbacks.Update().After("gorm:update").Before("gorm:commit_or_rollback_transaction").Replace("test:look", look),
		callbacks.Delete().After("gorm:delete").Before("gorm:commit_or_rollback_transaction").Replace("test:look", look), callbacks.Query().After("gorm:query").Replace("test:look", look),
		callbacks.Row().After("gorm:row").Replace("test:look", look), callbacks.Raw().After("gorm:raw").Replace("test:look", look),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { looking = true })
	return unheld, seen
}

func (p *pretended) refuses(t *testing.T, c cell, db *gorm.DB, want error) {
	t.Helper()
	w, key := p.seed(t), gormlock.Key(t.Name())
	if err := c.run(db, w, key); !errors.Is(err, want) {
		t.Errorf("err = %v, want %v", err, want)
	}
	if n := p.count(t, key); n != 0 {
		t.Errorf("%d locks were taken", n)
	}
}

// TestPretended_doors: what a lock that is held does to each door, by its options.
func TestPretended_doors(t *testing.T) {
	t.Parallel()
	p := newPretended(t, &gorm.Config{}, gormlock.DefaultTimeout(20*time.Millisecond))
	for _, d := range doors {
		if d.name == "Transaction at REPEATABLE READ" {
			continue
		}
		for name, c := range map[string]struct {
			opts []gormlock.LockOption
			want error
		}{
			"Try":            {[]gormlock.LockOption{gormlock.Try()}, gormlock.ErrNotAcquired},
			"Timeout":        {[]gormlock.LockOption{gormlock.Timeout(time.Millisecond)}, gormlock.ErrLockTimeout},
			"DefaultTimeout": {nil, gormlock.ErrLockTimeout},
			"shared":         {[]gormlock.LockOption{gormlock.Shared(), gormlock.Try()}, gormlock.ErrNotAcquired},
			"context":        {[]gormlock.LockOption{gormlock.Timeout(time.Hour)}, context.DeadlineExceeded},
		} {
			t.Run(d.name+"/"+name, func(t *testing.T) {
				key := gormlock.Key(t.Name())
				within(t, p.db, func(*gorm.DB) {
					db := p.db
					if name == "context" {
						ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
						defer cancel()
						db = db.WithContext(ctx)
					}
					ask(t, d, db, key, c.want, c.opts...)
				}, key)
				if err := onDoor(d, p.db, key, c.opts...); err != nil {
					t.Errorf("a free lock: %v", err)
				}
				if !isFree(t, p.db, key) {
					t.Error("held at the end")
				}
			})
		}
	}
}

// within runs body while a transaction holds the keys.
func within(t *testing.T, db *gorm.DB, body func(tx *gorm.DB), keys ...lockkey.Key) {
	t.Helper()
	err := db.Transaction(func(tx *gorm.DB) error {
		if len(keys) > 0 {
			if err := gormlock.AcquireXactLock(tx, keys); err != nil {
				return err
			}
		}
		body(tx)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func onDoor(d door, db *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
	if !d.inside {
		return d.acquire(db, key, opts...)
	}
	return db.Transaction(func(tx *gorm.DB) error { return d.acquire(tx, key, opts...) })
}

func ask(t *testing.T, d door, db *gorm.DB, key lockkey.Key, want error, opts ...gormlock.LockOption) {
	t.Helper()
	if err := onDoor(d, db, key, opts...); !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}
