package locks_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/lockkey"
)

// wantFree states which keys are free.
func wantFree(t *testing.T, when string, db *gorm.DB, free map[lockkey.Key]bool) {
	t.Helper()
	for key, want := range free {
		if got := isFree(t, db, key); got != want {
			t.Errorf("%s: %s is free: %v", when, key, got)
		}
	}
}

// acquire takes locks, which must be free.
func acquire(t *testing.T, tx *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) {
	t.Helper()
	if err := gormlock.AcquireXactLock(tx, []lockkey.Key{key}, append(opts, gormlock.Try())...); err != nil {
		t.Errorf("acquire %s: %v", key, err)
	}
}

// TestPretended_ends: locks end with their transaction, however it ends, and with the rollback to a savepoint before them.
func TestPretended_ends(t *testing.T) {
	t.Parallel()
	for name, config := range pretendedModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newPretended(t, config()).db
			a, b, c := gormlock.Key("a"), gormlock.Key("b"), gormlock.Key("c")
			for name, end := range map[string]func(tx *gorm.DB) error{
				"commit":           func(tx *gorm.DB) error { return tx.Commit().Error },
				"rollback":         func(tx *gorm.DB) error { return tx.Rollback().Error },
				"text of a commit": func(tx *gorm.DB) error { return tx.Exec("COMMIT").Error },
			} {
				tx := db.Begin()
				acquire(t, tx, a)
				wantFree(t, "before "+name, db, map[lockkey.Key]bool{a: false, b: true})
				if err := end(tx); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				wantFree(t, name, db, map[lockkey.Key]bool{a: true, b: true})
				if err := gormlock.AcquireXactLock(tx, []lockkey.Key{a}); !errors.Is(err, sql.ErrTxDone) && !errors.Is(err, gormlock.ErrNoTransaction) {
					t.Errorf("after %s: %v", name, err)
				}
				_ = tx.Rollback()
				wantFree(t, "after "+name, db, map[lockkey.Key]bool{a: true})
			}

			within(t, db, func(tx *gorm.DB) {
				if err := tx.SavePoint("before").Error; err != nil {
					t.Error(err)
				}
				acquire(t, tx, a)
				acquire(t, tx, b)
				if err := tx.RollbackTo("before").Error; err != nil {
					t.Error(err)
				}
				wantFree(t, "savepoint", db, map[lockkey.Key]bool{a: false, b: true})
				err := gormlock.Transaction(tx, func(tx *gorm.DB) error {
					acquire(t, tx, c)
					wantFree(t, "nested", db, map[lockkey.Key]bool{a: false, b: false, c: false})
					return errInner
				}, gormlock.Locking(b))
				if !errors.Is(err, errInner) {
					t.Error(err)
				}
				wantFree(t, "nested and rolled back", db, map[lockkey.Key]bool{a: false, b: true, c: true})
				if err := gormlock.Transaction(tx, func(*gorm.DB) error { return nil }, gormlock.Locking(b)); err != nil {
					t.Error(err)
				}
				wantFree(t, "nested and released", db, map[lockkey.Key]bool{a: false, b: false})
			}, a)
			wantFree(t, "the end", db, map[lockkey.Key]bool{a: true, b: true, c: true})

			func() {
				defer func() { _ = recover() }()
				_ = gormlock.Transaction(db, func(*gorm.DB) error { panic("at the disco") }, gormlock.Locking(a))
			}()
			wantFree(t, "panic", db, map[lockkey.Key]bool{a: true})
		})
	}
}

// TestPretended_contextOfTheTransaction: when it ends, the locks do, though nobody touches the transaction any more.
func TestPretended_contextOfTheTransaction(t *testing.T) {
	t.Parallel()
	db := newPretended(t, &gorm.Config{}).db
	key := gormlock.Key("k")
	ctx, cancel := context.WithCancel(t.Context())
	tx := db.WithContext(ctx).Begin()
	acquire(t, tx, key)
	cancel()
	if err := gormlock.Transaction(db, func(*gorm.DB) error { return nil }, gormlock.Locking(key, gormlock.Timeout(20*time.Second))); err != nil {
		t.Error(err)
	}
	if err := gormlock.AcquireXactLock(tx, []lockkey.Key{key}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = tx.Rollback()
	if !isFree(t, db, key) {
		t.Error("taken by a transaction that is over")
	}
}

// TestPretended_doubt: a text that can be read as a rollback is none here, and frees nothing.
func TestPretended_doubt(t *testing.T) {
	t.Parallel()
	db := newPretended(t, &gorm.Config{}).db
	key := gormlock.Key("k")
	within(t, db, func(tx *gorm.DB) {
		if err := tx.Exec(`SELECT '\''; ROLLBACK; --'`).Error; err != nil {
			t.Error(err)
		}
		wantFree(t, "in doubt", db, map[lockkey.Key]bool{key: false})
	}, key)
	wantFree(t, "the end", db, map[lockkey.Key]bool{key: true})
}

// TestPretended_keys: several are taken all or none; shared ones together; what a transaction holds it may take again, and
// waits for others only.
func TestPretended_keys(t *testing.T) {
	t.Parallel()
	db := newPretended(t, &gorm.Config{}).db
	a, b, c := gormlock.Key("a"), gormlock.Key("b"), lockkey.Pair(1, 2)
	within(t, db, func(*gorm.DB) {
		for _, opt := range []gormlock.LockOption{gormlock.Try(), gormlock.Timeout(time.Millisecond)} {
			within(t, db, func(tx *gorm.DB) {
				if err := gormlock.AcquireXactLock(tx, []lockkey.Key{a, b, c}, opt); !errors.Is(err, gormlock.ErrNotAcquired) && !errors.Is(err, gormlock.ErrLockTimeout) {
					t.Error(err)
				}
				wantFree(t, "none of them", db, map[lockkey.Key]bool{a: true, b: false, c: true})
				if err := tx.Create(&widget{Name: "usable"}).Error; err != nil {
					t.Error(err)
				}
			})
		}
	}, b)
	within(t, db, func(tx *gorm.DB) {
		acquire(t, tx, a)
		acquire(t, tx, a, gormlock.Shared())
		wantFree(t, "all of them", db, map[lockkey.Key]bool{a: false, b: false, c: false})
	}, a, b, c)
	within(t, db, func(tx *gorm.DB) {
		acquire(t, tx, a, gormlock.Shared())
		if !isFree(t, db, a, gormlock.Shared()) || isFree(t, db, a) {
			t.Error("shared is not shared, or free")
		}
		acquire(t, tx, a) // nobody else has it
		if isFree(t, db, a, gormlock.Shared()) {
			t.Error("exclusive is shared")
		}
	})
}

// TestPretended_excludes: many transactions read, think and write one row, each of them one after the other.
func TestPretended_excludes(t *testing.T) {
	t.Parallel()
	p := newPretended(t, &gorm.Config{})
	w := p.seed(t)
	const writers, each = 8, 10
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				err := gormlock.Transaction(p.db, func(tx *gorm.DB) error {
					var now widget
					if err := tx.First(&now, w.ID).Error; err != nil {
						return err
					}
					return tx.Model(&now).Update("n", now.N+1).Error
				}, gormlock.Locking(gormlock.Key("widget", w.ID)))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	var now widget
	if err := p.db.First(&now, w.ID).Error; err != nil || now.N != writers*each {
		t.Errorf("%d of %d, %v", now.N, writers*each, err)
	}
}

// TestPretended_deadlock: one of two that wait for each other is told, as by the server, and Attempts cures it.
func TestPretended_deadlock(t *testing.T) {
	t.Parallel()
	db := newPretended(t, &gorm.Config{}).db
	a, b := gormlock.Key("a"), gormlock.Key("b")
	var met sync.WaitGroup
	met.Add(2)
	var deadlocks sync.Map
	cross := func(first, second lockkey.Key) error {
		var once sync.Once
		return gormlock.Transaction(db, func(tx *gorm.DB) error {
			if err := gormlock.AcquireXactLock(tx, []lockkey.Key{first}); err != nil {
				return err
			}
			once.Do(func() { met.Done(); met.Wait() })
			err := gormlock.AcquireXactLock(tx, []lockkey.Key{second})
			if sqlstate.Is(err, sqlstate.DeadlockDetected) {
				deadlocks.Store(first, true)
			}
			return err
		}, gormlock.Attempts(10))
	}
	done := make(chan error, 2)
	go func() { done <- cross(a, b) }()
	go func() { done <- cross(b, a) }()
	if err := errors.Join(<-done, <-done); err != nil {
		t.Error(err)
	}
	n := 0
	deadlocks.Range(func(any, any) bool { n++; return true })
	if n == 0 {
		t.Error("nobody was told of the deadlock")
	}
}

// TestPretended_unseen: where nobody would see the transaction's end there is an error, and Transaction sees it.
func TestPretended_unseen(t *testing.T) {
	t.Parallel()
	key := gormlock.Key("k")
	for name, run := range map[string]func(t *testing.T, body func(db *gorm.DB)){
		"PlainTransactions": func(t *testing.T, body func(db *gorm.DB)) {
			t.Helper()
			body(newPretended(t, &gorm.Config{}, gormlock.PlainTransactions()).db)
		},
		"Connection": func(t *testing.T, body func(db *gorm.DB)) {
			t.Helper()
			if err := newPretended(t, &gorm.Config{}).db.Connection(func(db *gorm.DB) error { body(db); return nil }); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(db *gorm.DB) {
				err := db.Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{key}) })
				if !errors.Is(err, gormlock.ErrNotPostgres) {
					t.Errorf("db.Transaction: %v", err)
				}
				for range 2 { // the first one ends
					err := gormlock.Transaction(db, func(tx *gorm.DB) error {
						return gormlock.Transaction(tx, func(tx *gorm.DB) error { acquire(t, tx, key); return nil })
					}, gormlock.Locking(key, gormlock.Try()))
					if err := errors.Join(err, db.Scopes(gormlock.WithXactLock(key, gormlock.Try())).Create(&widget{Name: "x"}).Error); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestPretended_databases: those that are open on one database exclude each other, others do not.
func TestPretended_databases(t *testing.T) {
	t.Parallel()
	key := gormlock.Key("k")
	file := filepath.Join(t.TempDir(), "db")
	for name, c := range map[string]struct {
		one, other string
		excludes   bool
	}{
		"a file":         {"file:" + file, file, true},
		"other files":    {file, file + "2", false},
		"shared memory":  {"file:pretended?mode=memory&cache=shared", "file:pretended?mode=memory&cache=shared", true},
		"other memories": {"file:this?mode=memory&cache=shared", "file:that?mode=memory&cache=shared", false},
		"private memory": {":memory:", ":memory:", false},
	} {
		t.Run(name, func(t *testing.T) {
			one, other := openPretended(t, c.one, &gorm.Config{}), openPretended(t, c.other, &gorm.Config{})
			if err := gormlocktest.PretendLocks(one); err != nil { // again
				t.Error(err)
			}
			within(t, one, func(*gorm.DB) {
				if isFree(t, other, key) == c.excludes {
					t.Errorf("excluded: %v", !c.excludes)
				}
				if isFree(t, one.Session(&gorm.Session{PrepareStmt: true}), key) {
					t.Error("free in a session of the same database")
				}
			}, key)
		})
	}
}
