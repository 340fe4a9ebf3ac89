package compat_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

type account struct {
	ID      int64
	Name    string
	Balance int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// job is what workers share.
type job struct {
	ID    int64
	State string
	Runs  int
}

// report is written by the holder of a lock.
type report struct {
	ID    int64
	Body  string
	Fence int64 `gorm:"not null;default:0" gormlock:"fence"`
}

// witness looks, in the transaction that GORM makes for it.
type witness struct{ ID int64 }

type look struct{}

func (w *witness) AfterCreate(tx *gorm.DB) error {
	if see, ok := tx.Statement.Context.Value(look{}).(func()); ok {
		see()
	}
	return nil
}

// stand is a side with the plugin, and somebody who looks at it from outside and disturbs.
type stand struct {
	*side
	setup    setup
	rival    *gorm.DB
	observer *pgtest.Observer
}

func newStand(t *testing.T, c setup) *stand {
	t.Helper()
	s := &stand{side: open(t, c, gormlock.New(c.plugin...)), setup: c}
	s.rival = pgtest.Open(t, append(s.at.options(), pgtest.SimpleProtocol(), pgtest.Plugin(gormlock.New()))...)
	s.observer = pgtest.Observe(t, s.at.dsn)
	pool, err := s.rival.DB()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.rival.Migrator().CreateTable(&account{}, &job{}, &report{}, &witness{}), gormlock.MigrateOnce(s.rival),
		fence.Migrate(t.Context(), pool), lease.Migrate(t.Context(), pool)); err != nil {
		t.Fatal(err)
	}
	return s
}

// held looks for a lock in the database of the stand.
func (s *stand) held(t *testing.T, key lockkey.Key) bool {
	t.Helper()
	return s.observer.Held(t, key)
}

// key is one that nobody else has.
func (s *stand) key(t *testing.T) lockkey.Key {
	t.Helper()
	key := pgtest.Key(t)
	t.Cleanup(func() { s.observer.AssertFree(t, key) })
	return key
}

func create[T any](t *testing.T, s *stand, value T) T {
	t.Helper()
	db := s.rival
	if _, hasFence := any(value).(report); hasFence {
		db = db.Clauses(gormlock.IgnoreFence())
	}
	if err := db.Create(&value).Error; err != nil {
		t.Fatal(err)
	}
	return value
}

// features are what gormlock adds to GORM.
var features = []struct {
	name  string
	works func(t *testing.T, s *stand)
}{
	{"a lock with a statement", lockWithStatement},
	{"a lock without a transaction is refused", lockWithoutTransaction},
	{"a lock somebody else has", lockTaken},
	{"a lock is free after its savepoint", lockInSavepoint},
	{"no update is lost under a lock", noLostUpdate},
	{"no update is lost with a version", noLostVersion},
	{"a stale version", staleVersion},
	{"a version after a rollback", versionAfterRollback},
	{"a row lock", rowLock},
	{"no job is claimed twice", claims},
	{"a fence", fenced},
	{"an effect happens once", once},
	{"a lease", leased},
	{"a session lock", sessionLock},
}

// TestFeatures: what gormlock adds works in each way to run GORM.
func TestFeatures(t *testing.T) {
	t.Parallel()
	for _, c := range setups() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, c)
			for _, f := range features {
				t.Run(f.name, func(t *testing.T) { f.works(t, s) })
			}
			if pool, err := s.db.DB(); err != nil || pool.Stats().InUse != 0 {
				t.Errorf("%d connections are in use after all, %v", pool.Stats().InUse, err)
			}
		})
	}
}

func lockWithStatement(t *testing.T, s *stand) {
	key, another := s.key(t), s.key(t)
	err := s.db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Scopes(gormlock.WithXactLock(key)).Find(&[]account{}).Error; err != nil {
			return err
		}
		if _, err := gorm.G[account](tx, gormlock.XactLock(another)).Find(t.Context()); err != nil {
			return err
		}
		if !s.held(t, key) || !s.held(t, another) {
			t.Errorf("held %t, %t in the transaction", s.held(t, key), s.held(t, another))
		}
		return nil
	})
	if err != nil || s.held(t, key) {
		t.Errorf("held %t after the transaction, %v", s.held(t, key), err)
	}
	seen := false
	ctx := context.WithValue(t.Context(), look{}, func() { seen = s.held(t, key) })
	err = s.db.WithContext(ctx).Scopes(gormlock.WithXactLock(key)).Create(&witness{}).Error
	if s.setup.skips {
		if !errors.Is(err, gormlock.ErrNoTransaction) || seen {
			t.Errorf("without a transaction of GORM's: %v", err)
		}
	} else if err != nil || !seen {
		t.Errorf("held %t in GORM's own transaction, %v", seen, err)
	}
}

func lockWithoutTransaction(t *testing.T, s *stand) {
	key := s.key(t)
	s.resetWires()
	var n int64
	for _, err := range []error{
		s.db.Scopes(gormlock.WithXactLock(key)).Find(&[]account{}).Error,
		s.db.Model(&account{}).Scopes(gormlock.WithXactLock(key)).Count(&n).Error,
		s.db.Scopes(gormlock.WithSkipLocked()).Find(&[]account{}).Error,
	} {
		if !errors.Is(err, gormlock.ErrNoTransaction) {
			t.Error(err)
		}
	}
	for _, wire := range s.wires {
		if sent := wire.Statements(); len(sent) > 0 {
			t.Errorf("sent %q", sent)
		}
	}
}

func lockTaken(t *testing.T, s *stand) {
	key := s.key(t)
	err := gormlock.Transaction(s.rival, func(*gorm.DB) error {
		return s.db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Scopes(gormlock.WithXactLock(key, gormlock.Try())).Find(&[]account{}).Error; !errors.Is(err, gormlock.ErrNotAcquired) {
				t.Errorf("with Try: %v", err)
			}
			err := gormlock.AcquireXactLock(tx, []lockkey.Key{key}, gormlock.Timeout(20*time.Millisecond))
			if !errors.Is(err, gormlock.ErrLockTimeout) {
				t.Errorf("with Timeout: %v", err)
			}
			return tx.Create(&job{State: "usable"}).Error
		})
	}, gormlock.Locking(key))
	if err != nil {
		t.Error(err)
	}
}

func lockInSavepoint(t *testing.T, s *stand) {
	key := s.key(t)
	err := s.db.Transaction(func(tx *gorm.DB) error {
		inner := tx.Transaction(func(tx *gorm.DB) error {
			if err := tx.Scopes(gormlock.WithXactLock(key)).Find(&[]account{}).Error; err != nil || !s.held(t, key) {
				t.Errorf("held %t, %v", s.held(t, key), err)
			}
			return errRefused
		})
		if !errors.Is(inner, errRefused) || s.held(t, key) {
			t.Errorf("held %t after the savepoint, %v", s.held(t, key), inner)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

const writers, turns = 6, 4

// everybody runs turn in many goroutines.
func everybody(t *testing.T, turn func() error) {
	t.Helper()
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range turns {
				if err := turn(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func noLostUpdate(t *testing.T, s *stand) {
	key, shared := s.key(t), create(t, s, job{})
	everybody(t, func() error {
		return gormlock.Transaction(s.db.WithContext(t.Context()), func(tx *gorm.DB) error {
			var now job
			if err := tx.First(&now, shared.ID).Error; err != nil {
				return err
			}
			return tx.Model(&now).Update("runs", now.Runs+1).Error
		}, gormlock.Locking(key, gormlock.Timeout(20*time.Second)))
	})
	var after job
	if err := s.rival.First(&after, shared.ID).Error; err != nil || after.Runs != writers*turns {
		t.Errorf("%d of %d, %v", after.Runs, writers*turns, err)
	}
}

func noLostVersion(t *testing.T, s *stand) {
	shared := create(t, s, account{Name: "shared"})
	everybody(t, func() error {
		return gormlock.Transaction(s.db.WithContext(t.Context()), func(tx *gorm.DB) error {
			var now account
			if err := tx.First(&now, shared.ID).Error; err != nil {
				return err
			}
			now.Balance++
			return tx.Save(&now).Error
		}, gormlock.Attempts(500))
	})
	var after account
	if err := s.rival.First(&after, shared.ID).Error; err != nil || after.Balance != writers*turns || after.Version != 1+writers*turns {
		t.Errorf("%+v, want %d, %v", after, writers*turns, err)
	}
}

func staleVersion(t *testing.T, s *stand) {
	made := account{Name: "a"}
	if err := s.db.Create(&made).Error; err != nil || made.Version != 1 {
		t.Fatalf("%+v %v", made, err)
	}
	stale := made
	if err := s.db.Model(&made).Update("balance", 5).Error; err != nil || made.Version != 2 {
		t.Errorf("%+v %v", made, err)
	}
	for name, write := range map[string]func(a *account) error{
		"Save":    func(a *account) error { return s.db.Save(a).Error },
		"Updates": func(a *account) error { return s.db.Model(a).Updates(account{Name: "lost"}).Error },
		"Delete":  func(a *account) error { return s.db.Delete(a).Error },
	} {
		a := stale
		var conflict *gormlock.StaleError
		if err := write(&a); !errors.As(err, &conflict) || !errors.Is(err, gormlock.ErrStale) || a.Version != 1 {
			t.Errorf("%s: %v, %+v", name, err, a)
		} else if conflict.Deleted || fmt.Sprint(conflict.Actual) != "2" {
			t.Errorf("%s: %+v", name, conflict)
		}
	}
	var stored account
	if err := s.rival.First(&stored, made.ID).Error; err != nil || stored != made {
		t.Errorf("stored %+v, in memory %+v, %v", stored, made, err)
	}
}

func versionAfterRollback(t *testing.T, s *stand) {
	made := create(t, s, account{Name: "a"})
	begun := made
	err := gormlock.Transaction(s.db, func(tx *gorm.DB) error {
		made.Name = "b"
		if err := tx.Save(&made).Error; err != nil || made.Version != 2 {
			t.Errorf("%+v %v", made, err)
		}
		return errRefused
	})
	if !errors.Is(err, errRefused) || made.Version != 1 {
		t.Errorf("after the rollback %+v, %v", made, err)
	}
	if len(s.setup.plugin) > 0 { // PlainTransactions: only Transaction puts memory right
		return
	}
	err = s.db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Model(&begun).Update("name", "c").Error; err != nil || begun.Version != 2 {
			t.Errorf("%+v %v", begun, err)
		}
		return errRefused
	})
	if !errors.Is(err, errRefused) || begun.Version != 1 {
		t.Errorf("after the rollback of GORM's transaction %+v, %v", begun, err)
	}
}

func rowLock(t *testing.T, s *stand) {
	rows := []account{create(t, s, account{Name: "a"}), create(t, s, account{Name: "b"})}
	err := s.db.Transaction(func(tx *gorm.DB) error {
		var mine account
		err := tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Timeout(time.Second))).First(&mine, rows[0].ID).Error
		if err != nil {
			return err
		}
		return s.rival.Transaction(func(tx *gorm.DB) error {
			if err := gormlock.LockRow(tx, &account{ID: rows[0].ID}, gormlock.Try()); !errors.Is(err, gormlock.ErrNotAcquired) {
				t.Errorf("the rival: %v", err)
			}
			var free []account
			ids := []int64{rows[0].ID, rows[1].ID}
			if err := tx.Scopes(gormlock.WithSkipLocked()).Find(&free, ids).Error; err != nil || len(free) != 1 || free[0].ID != rows[1].ID {
				t.Errorf("the rival skipped to %+v, %v", free, err)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

func claims(t *testing.T, s *stand) {
	const jobs = 12
	for range jobs {
		create(t, s, job{State: "ready"})
	}
	var mu sync.Mutex
	var done []int64
	everybody(t, func() error {
		got, err := gormlock.Claim[job](s.db, 1, map[string]any{"state": "done", "runs": gorm.Expr("runs + 1")},
			func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", "ready").Order("id") })
		mu.Lock()
		defer mu.Unlock()
		for _, j := range got {
			done = append(done, j.ID)
		}
		return err
	})
	slices.Sort(done)
	var twice int64
	err := s.rival.Model(&job{}).Where("state = 'done' AND runs <> 1").Count(&twice).Error
	if len(done) != jobs || len(slices.Compact(slices.Clone(done))) != jobs || twice != 0 || err != nil {
		t.Errorf("claimed %d, %d twice, %v", done, twice, err)
	}
}

func fenced(t *testing.T, s *stand) {
	pool, err := s.db.DB()
	if err != nil {
		t.Fatal(err)
	}
	key := gormlock.Key("report", t.Name())
	earlier, err := fence.Issue(t.Context(), pool, key)
	if err != nil {
		t.Fatal(err)
	}
	made := create(t, s, report{Body: "first"})
	ctx := fence.NewContext(t.Context(), earlier)
	if err := s.db.WithContext(ctx).Model(&made).Update("body", "mine").Error; err != nil || made.Fence != earlier.Number {
		t.Errorf("%+v %v", made, err)
	}
	later, err := fence.Issue(t.Context(), pool, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.db.WithContext(ctx).Model(&made).Update("body", "late").Error; !errors.Is(err, gormlock.ErrFenced) {
		t.Errorf("the earlier holder: %v", err)
	}
	if err := s.db.Model(&made).Update("body", "nobody's").Error; !errors.Is(err, gormlock.ErrFenceMissing) {
		t.Errorf("without a token: %v", err)
	}
	if err := s.db.Clauses(gormlock.Fence(later)).Model(&made).Update("body", "theirs").Error; err != nil {
		t.Error(err)
	}
	var stored report
	if err := s.rival.First(&stored, made.ID).Error; err != nil || stored.Body != "theirs" || stored.Fence != later.Number {
		t.Errorf("stored %+v, %v", stored, err)
	}
}

func once(t *testing.T, s *stand) {
	effect := create(t, s, job{})
	everybody(t, func() error {
		return s.db.WithContext(t.Context()).Transaction(func(tx *gorm.DB) error {
			result, err := gormlock.Once(tx, "effect/"+t.Name(), func(tx *gorm.DB) (string, error) {
				return "done", tx.Model(&effect).UpdateColumn("runs", gorm.Expr("runs + 1")).Error
			})
			if err == nil && result != "done" {
				t.Errorf("the result is %q", result)
			}
			return err
		})
	})
	var after job
	if err := s.rival.First(&after, effect.ID).Error; err != nil || after.Runs != 1 {
		t.Errorf("%+v, %v", after, err)
	}
}

func leased(t *testing.T, s *stand) {
	pool, err := s.db.DB()
	if err != nil {
		t.Fatal(err)
	}
	manager, err := lease.New(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := manager.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	key := gormlock.Key("lease", t.Name())
	mine, err := manager.Acquire(t.Context(), key, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manager.TryAcquire(t.Context(), key, time.Second); !errors.Is(err, lease.ErrNotAcquired) {
		t.Errorf("somebody else: %v", err)
	}
	made := report{Body: "held"}
	if err := s.db.Clauses(gormlock.Fence(mine.Token())).Create(&made).Error; err != nil || made.Fence != mine.Token().Number {
		t.Errorf("%+v %v", made, err)
	}
	if err := errors.Join(mine.Renew(t.Context()), mine.Release(t.Context())); err != nil {
		t.Error(err)
	}
	again, err := manager.TryAcquire(t.Context(), key, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// sessionLock: behind a pooler a session is nobody's, and that is refused; anywhere else it works beside the pool.
func sessionLock(t *testing.T, s *stand) {
	manager, err := sessionlock.Open(t.Context(), s.wired.dsn)
	if s.setup.pooler {
		if !errors.Is(err, sessionlock.ErrPooler) {
			t.Errorf("behind a pooler: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := manager.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	key := s.key(t)
	mine, err := manager.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	err = gormlock.Transaction(s.db, func(*gorm.DB) error { return nil }, gormlock.Locking(key, gormlock.Try()))
	if !errors.Is(err, gormlock.ErrNotAcquired) {
		t.Errorf("a transaction beside it: %v", err)
	}
	if err := mine.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
