package locks_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestBadKeysAndOptions are refused by every door before anything is executed, and leave everything as it was.
func TestBadKeysAndOptions(t *testing.T) {
	t.Parallel()
	s := newLookout(t, pgtest.MaxConns(1))
	good := pgtest.Key(t)
	var nilOption gormlock.LockOption
	for name, c := range map[string]struct {
		key  lockkey.Key
		opts []gormlock.LockOption
		want error
	}{
		"no part":              {gormlock.Key(), nil, lockkey.ErrInvalid},
		"zero key":             {lockkey.Key{}, nil, lockkey.ErrInvalid},
		"unsupported part":     {gormlock.Key("invoice", 1.5), nil, lockkey.ErrInvalid},
		"pointer part":         {gormlock.Key(new(int)), nil, lockkey.ErrInvalid},
		"nil part":             {gormlock.Key(nil), nil, lockkey.ErrInvalid},
		"timeout of 0":         {good, []gormlock.LockOption{gormlock.Timeout(0)}, gormlock.ErrOption},
		"negative timeout":     {good, []gormlock.LockOption{gormlock.Timeout(-time.Second)}, gormlock.ErrOption},
		"timeout of a month":   {good, []gormlock.LockOption{gormlock.Timeout(31 * 24 * time.Hour)}, gormlock.ErrOption},
		"try and timeout":      {good, []gormlock.LockOption{gormlock.Try(), gormlock.Timeout(time.Second)}, gormlock.ErrOption},
		"nil option":           {good, []gormlock.LockOption{nilOption}, gormlock.ErrOption},
		"zero option":          {good, []gormlock.LockOption{gormlock.WaitOption{}}, gormlock.ErrOption},
		"bad key, good option": {gormlock.Key(), []gormlock.LockOption{gormlock.Try()}, lockkey.ErrInvalid},
	} {
		for _, d := range doors {
			t.Run(name+"/"+d.name, func(t *testing.T) {
				ask := func(db *gorm.DB) {
					s.begin(good)
					err := d.acquire(db, c.key, c.opts...)
					executed, _ := s.end()
					if !errors.Is(err, c.want) || gormlock.IsRetryable(err) {
						t.Errorf("err = %v, want %v", err, c.want)
					}
					if d.name == "nested Transaction" { // its savepoint may come first
						return
					}
					if len(executed) > 0 {
						t.Errorf("executed %q", executed)
					}
				}
				d.leavesUsable(t, s, ask)
			})
		}
	}
	t.Run("no keys", func(t *testing.T) {
		usableAfter(t, s, func(tx *gorm.DB) {
			for _, keys := range [][]lockkey.Key{nil, {}, {good, {}}} {
				if err := gormlock.AcquireXactLock(tx, keys); !errors.Is(err, lockkey.ErrInvalid) {
					t.Error(err)
				}
			}
			if pgtest.Held(t, good) {
				t.Error("held")
			}
		})
	})
	t.Run("zero clause", func(t *testing.T) {
		if err := s.db.Clauses(gormlock.XactLockClause{}).Create(&widget{}).Error; !errors.Is(err, lockkey.ErrInvalid) {
			t.Error(err)
		}
	})
	t.Run("shortest and longest timeout", func(t *testing.T) {
		for _, d := range []time.Duration{1, 24 * 24 * time.Hour} {
			if err := s.db.Scopes(gormlock.WithXactLock(good, gormlock.Timeout(d))).Create(&widget{}).Error; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestBadDefaultTimeout(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{0, -time.Second} {
		db := pgtest.Open(t)
		if err := db.Use(gormlock.New(gormlock.DefaultTimeout(d))); !errors.Is(err, gormlock.ErrOption) {
			t.Errorf("DefaultTimeout(%s): %v", d, err)
		}
	}
	// More than the server can count is an error on use at the latest, never a shorter wait.
	db := pgtest.Open(t)
	key := pgtest.Key(t)
	err := db.Use(gormlock.New(gormlock.DefaultTimeout(31 * 24 * time.Hour)))
	if err == nil {
		err = db.Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{key}) })
	}
	if !errors.Is(err, gormlock.ErrOption) {
		t.Errorf("DefaultTimeout of a month: %v", err)
	}
}

func TestBadTransactions(t *testing.T) {
	t.Parallel()
	s := newLookout(t, pgtest.MaxConns(1))
	fn := func(*gorm.DB) error { return nil }
	key := pgtest.Key(t)
	for name, err := range map[string]error{
		"nil db":               gormlock.Transaction(nil, fn),
		"zero db":              gormlock.Transaction(&gorm.DB{}, fn),
		"nil db, acquire":      gormlock.AcquireXactLock(nil, []lockkey.Key{key}),
		"nil db, touch":        gormlock.Touch(nil, &stand.Account{ID: 1, Version: 1}),
		"nil db, verify":       gormlock.VerifyVersion(nil, &stand.Account{ID: 1, Version: 1}),
		"zero db, acquire":     gormlock.AcquireXactLock(&gorm.DB{}, []lockkey.Key{key}),
		"nil function":         gormlock.Transaction(s.db, nil),
		"nil option":           gormlock.Transaction(s.db, fn, nil),
		"no attempts":          gormlock.Transaction(s.db, fn, gormlock.Attempts(0)),
		"negative attempts":    gormlock.Transaction(s.db, fn, gormlock.Attempts(-1)),
		"nobody to tell":       gormlock.Transaction(s.db, fn, gormlock.OnRetry(nil)),
		"unsupported level":    gormlock.Transaction(s.db, fn, gormlock.Isolation(sql.LevelLinearizable)),
		"unsupported, locking": gormlock.Transaction(s.db, fn, gormlock.Isolation(sql.LevelLinearizable), gormlock.Locking(key)),
		"failed db":            gormlock.Transaction(s.db.Where("x").Session(&gorm.Session{}).Exec("select 1/0"), fn),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if strings.Contains(name, "db") && !strings.Contains(name, "failed") && !errors.Is(err, gorm.ErrInvalidDB) {
			t.Errorf("%s: %v", name, err)
		}
	}
	usableAfter(t, s, func(tx *gorm.DB) {
		for _, opt := range []gormlock.TxOption{gormlock.ReadOnly(), gormlock.Isolation(sql.LevelSerializable)} {
			if err := gormlock.Transaction(tx, fn, opt); !errors.Is(err, gormlock.ErrOption) {
				t.Errorf("in a transaction: %v", err)
			}
		}
	})
}

// TestErrNotInstalled: nothing is executed without the plugin.
func TestErrNotInstalled(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	key := pgtest.Key(t)
	for _, d := range doors {
		if d.name == "Row" { // GORM's own answer to any error is a nil *sql.Row; only the plugin puts another in its place
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			for _, db := range []*gorm.DB{s.plain, s.plain.Session(&gorm.Session{PrepareStmt: true})} {
				err := db.Transaction(func(tx *gorm.DB) error { return d.acquire(tx, key) })
				if !errors.Is(err, gormlock.ErrNotInstalled) {
					t.Errorf("in a transaction: %v", err)
				}
				if err := d.acquire(db, key); !errors.Is(err, gormlock.ErrNotInstalled) {
					t.Errorf("outside of one: %v", err)
				}
			}
		})
	}
	var n int64
	if err := s.plain.Model(&widget{}).Count(&n).Error; err != nil || n != 0 {
		t.Errorf("%d rows were written, %v", n, err)
	}
}

// TestErrNotPostgres: on SQLite the plugin installs, everything that needs no PostgreSQL works, and a lock is an error.
func TestErrNotPostgres(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*gorm.Config){
		"default":                func(*gorm.Config) {},
		"PrepareStmt":            func(c *gorm.Config) { c.PrepareStmt = true },
		"SkipDefaultTransaction": func(c *gorm.Config) { c.SkipDefaultTransaction = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.OnSQLite(t, []any{&widgetMaker{}, &widget{}, &widgetPart{}}, change)
			key := gormlock.Key(t.Name())
			for _, d := range doors {
				if d.name == "Transaction at REPEATABLE READ" {
					continue
				}
				if err := d.acquire(db, key); !errors.Is(err, gormlock.ErrNotPostgres) {
					t.Errorf("%s: %v", d.name, err)
				}
				err := db.Transaction(func(tx *gorm.DB) error {
					if err := tx.Create(&widget{Name: "kept"}).Error; err != nil {
						return err
					}
					if err := d.acquire(tx, key); !errors.Is(err, gormlock.ErrNotPostgres) {
						t.Errorf("%s in a transaction: %v", d.name, err)
					}
					return nil
				})
				if err != nil {
					t.Errorf("%s: the transaction: %v", d.name, err)
				}
			}
			var kept, others int64
			err := errors.Join(db.Model(&widget{}).Where("name = ?", "kept").Count(&kept).Error, db.Model(&widget{}).Where("name <> ?", "kept").Count(&others).Error)
			if err != nil || kept != int64(len(doors)-1) || others != 0 {
				t.Errorf("%d kept, %d others, %v", kept, others, err)
			}
			err = gormlock.Transaction(db, func(tx *gorm.DB) error { return tx.Create(&widget{Name: "plain"}).Error }, gormlock.Attempts(3))
			if err != nil {
				t.Errorf("Transaction without a lock: %v", err)
			}
		})
	}
}

func TestClosedPool(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, s *lookout) {
		key := pgtest.Key(t)
		pool, err := s.db.DB()
		if err != nil {
			t.Fatal(err)
		}
		if err := pool.Close(); err != nil {
			t.Fatal(err)
		}
		for _, d := range doors {
			err := d.acquire(s.db, key)
			if d.inside && d.name != "nested Transaction" && d.name != "Clauses" { // these open one
				if !errors.Is(err, gormlock.ErrNoTransaction) {
					t.Errorf("%s: %v", d.name, err)
				}
				err = s.db.Transaction(func(tx *gorm.DB) error { return d.acquire(tx, key) })
			}
			if err == nil || !strings.Contains(err.Error(), "database is closed") {
				t.Errorf("%s: %v", d.name, err)
			}
		}
	})
}

// TestAbortedTransaction: the error is the server's 25P02, and the transaction is where it was: a savepoint brings it back.
func TestAbortedTransaction(t *testing.T) {
	t.Parallel()
	s := newLookout(t, pgtest.MaxConns(1))
	for _, d := range everyDoor {
		if !d.inside {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			for _, opts := range [][]gormlock.LockOption{nil, {gormlock.Try()}, {gormlock.Timeout(time.Second)}} {
				key := pgtest.Key(t)
				usableAfter(t, s, func(tx *gorm.DB) {
					if err := tx.SavePoint("before").Error; err != nil {
						t.Error(err)
					}
					if tx.Exec("select 1/0").Error == nil {
						t.Error("the control did not fail")
					}
					var coded interface{ SQLState() string }
					if err := d.acquire(tx, key, opts...); !errors.As(err, &coded) || coded.SQLState() != "25P02" {
						t.Errorf("err = %v", err)
					}
					if err := tx.RollbackTo("before").Error; err != nil {
						t.Error(err)
					}
					if err := d.acquire(tx, key, opts...); err != nil {
						t.Errorf("after the savepoint: %v", err)
					}
				})
			}
		})
	}
}

// TestReadOnlyTransaction: advisory locks write nothing, so they are there.
func TestReadOnlyTransaction(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	for _, d := range everyDoor {
		if !d.inside || d.name == "Clauses" { // that one is an update
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			for _, opts := range [][]gormlock.LockOption{nil, {gormlock.Try()}, {gormlock.Timeout(time.Minute)}, {gormlock.Shared()}} {
				key, begun := pgtest.Key(t), pgtest.Key(t)
				err := gormlock.Transaction(s.db, func(tx *gorm.DB) error {
					if err := d.acquire(tx, key, opts...); err != nil {
						t.Error(err)
					}
					if !pgtest.Held(t, begun) || !pgtest.Held(t, key) {
						t.Error("not held")
					}
					return tx.Create(&widget{}).Error
				}, gormlock.ReadOnly(), gormlock.Locking(begun, opts...))
				if err == nil || !strings.Contains(err.Error(), "25006") {
					t.Errorf("a write in a read-only transaction: %v", err)
				}
			}
		})
	}
}

// TestContextEndedBefore: nothing is sent, so nothing is lost.
func TestContextEndedBefore(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	expired, stop := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer stop()
	eachMode(t, func(t *testing.T, s *lookout) {
		for _, d := range doors {
			t.Run(d.name, func(t *testing.T) {
				key := pgtest.Key(t)
				for want, ctx := range map[error]context.Context{context.Canceled: canceled, context.DeadlineExceeded: expired} {
					ask := func(db *gorm.DB) {
						s.begin(key)
						err := d.acquire(db.WithContext(ctx), key)
						executed, _ := s.end()
						if !errors.Is(err, want) || gormlock.IsRetryable(err) {
							t.Errorf("err = %v, want %v", err, want)
						}
						if len(executed) > 0 {
							t.Errorf("executed %q", executed)
						}
					}
					d.leavesUsable(t, s, ask)
				}
			})
		}
	}, pgtest.MaxConns(1))
}

func manyKeys(t *testing.T, n int) []lockkey.Key {
	keys := make([]lockkey.Key, n)
	for i := range keys {
		keys[i] = lockkey.Of(t.Name(), i)
	}
	return keys
}

// TestTenThousandKeys in one call, on a server that has room for them.
func TestTenThousandKeys(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t, pgserver.Setting("max_locks_per_transaction", "512"), pgserver.Setting("max_connections", "30"))
	s := &lookout{}
	dsn := server.DSN("postgres")
	s.plain = pgtest.Open(t, pgtest.Through(dsn))
	if err := s.plain.AutoMigrate(&widget{}); err != nil {
		t.Fatal(err)
	}
	s.db = pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	observer := pgtest.Observe(t, dsn)
	keys := manyKeys(t, 10_000)
	for _, opts := range [][]gormlock.LockOption{nil, {gormlock.Try()}, {gormlock.Timeout(time.Minute)}, {gormlock.Shared()}} {
		usableAfter(t, s, func(tx *gorm.DB) {
			start := time.Now()
			if err := gormlock.AcquireXactLock(tx, keys, opts...); err != nil {
				t.Fatal(err)
			}
			t.Logf("10,000 keys in %s", time.Since(start))
			if n := advisoryLocks(t, s.plain); n != len(keys) {
				t.Errorf("%d locks are held", n)
			}
		})
	}
	observer.AssertFree(t, keys[0], keys[len(keys)-1])
	t.Run("in the BEGIN", func(t *testing.T) {
		var opts []gormlock.TxOption
		for _, key := range keys {
			opts = append(opts, gormlock.Locking(key))
		}
		start := time.Now()
		err := gormlock.Transaction(s.db, func(*gorm.DB) error {
			if n := advisoryLocks(t, s.plain); n != len(keys) {
				t.Errorf("%d locks are held", n)
			}
			return nil
		}, opts...)
		if err != nil || time.Since(start) > 5*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// TestFullLockTable: 53200 is an error that names the cure; the transaction is as usable as it was and holds nothing.
func TestFullLockTable(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t, pgserver.Setting("max_locks_per_transaction", "10"), pgserver.Setting("max_connections", "20"),
		pgserver.Setting("max_prepared_transactions", "0"), pgserver.Setting("max_wal_senders", "0"), pgserver.Setting("max_worker_processes", "0"))
	s := &lookout{}
	dsn := server.DSN("postgres")
	s.plain = pgtest.Open(t, pgtest.Through(dsn))
	if err := s.plain.AutoMigrate(&widget{}); err != nil {
		t.Fatal(err)
	}
	s.db = pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()), pgtest.MaxConns(1))
	full := func(t *testing.T, err error) {
		t.Helper()
		var coded interface{ SQLState() string }
		if !errors.As(err, &coded) || coded.SQLState() != "53200" || !strings.Contains(err.Error(), "max_locks_per_transaction") || gormlock.IsRetryable(err) {
			t.Errorf("err = %.300v", err)
		}
	}
	keys := manyKeys(t, 10_000)
	for _, opts := range [][]gormlock.LockOption{nil, {gormlock.Try()}, {gormlock.Timeout(time.Minute)}} {
		t.Run(fmt.Sprint("many at once ", len(opts)), func(t *testing.T) {
			usableAfter(t, s, func(tx *gorm.DB) {
				full(t, gormlock.AcquireXactLock(tx, keys, opts...))
				if n := advisoryLocks(t, s.plain); n != 0 {
					t.Errorf("%d locks are held", n)
				}
			})
		})
	}
	t.Run("in the BEGIN", func(t *testing.T) {
		var begin []gormlock.TxOption
		for _, key := range keys[:5_000] {
			begin = append(begin, gormlock.Locking(key))
		}
		for _, level := range []sql.IsolationLevel{sql.LevelDefault, sql.LevelRepeatableRead} {
			full(t, gormlock.Transaction(s.db, func(*gorm.DB) error { return nil }, append(begin, gormlock.Isolation(level))...))
			if n := advisoryLocks(t, s.plain); n != 0 {
				t.Errorf("%d locks are held", n)
			}
		}
	})
	t.Run("one more", func(t *testing.T) {
		// Somebody else fills the table to the last slot, whatever the locks of other statements need.
		holder := pgtest.Conn(t, pgtest.Through(dsn))
		if _, err := holder.Exec(context.Background(), `begin; do $$ declare i int := 0; begin
			loop perform pg_advisory_xact_lock(-1, i); i := i + 1; end loop;
			exception when others then end $$`); err != nil {
			t.Fatal(err)
		}
		err := s.db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Exec("select 1").Error; err != nil {
				return err
			}
			if _, err := holder.Exec(context.Background(), `do $$ begin for i in 1..100000 loop perform pg_advisory_lock(-2, i); end loop; exception when others then end $$`); err != nil {
				t.Error(err)
			}
			for _, opts := range [][]gormlock.LockOption{nil, {gormlock.Timeout(time.Minute)}, {gormlock.Try()}} {
				full(t, gormlock.AcquireXactLock(tx, keys[:1], opts...))
				if err := tx.Exec("select 1").Error; err != nil {
					t.Errorf("options %v: the transaction is not usable: %v", opts, err)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// advisoryLocks counts all that are held in the database.
func advisoryLocks(t *testing.T, db *gorm.DB) (n int) {
	t.Helper()
	if err := db.Raw("select count(*) from pg_locks where locktype = 'advisory' and granted").Scan(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}
