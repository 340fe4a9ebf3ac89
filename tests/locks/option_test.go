package locks_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// door is a way to ask for one lock.
type door struct {
	name string
	// inside asks in an open transaction; if not, the door opens its own.
	inside  bool
	acquire func(db *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error
}

var doors = []door{
	{"Scopes", true, func(tx *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		return tx.Scopes(gormlock.WithXactLock(key, opts...)).Limit(1).Find(&[]widget{}).Error
	}},
	{"Clauses", true, func(tx *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		return tx.Clauses(gormlock.XactLock(key, opts...)).Model(&widget{}).Where("false").Update("n", 1).Error
	}},
	{"Row", true, func(tx *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		var n int
		return tx.Scopes(gormlock.WithXactLock(key, opts...)).Raw("select 1").Row().Scan(&n)
	}},
	{"Exec", true, func(tx *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		return tx.Scopes(gormlock.WithXactLock(key, opts...)).Exec("select 1").Error
	}},
	{"G", true, func(tx *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		_, err := gorm.G[widget](tx, gormlock.XactLock(key, opts...)).Limit(1).Find(tx.Statement.Context)
		return err
	}},
	{"G.Scopes", true, func(tx *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		_, err := gorm.G[widget](tx).Scopes(gormlock.XactLock(key, opts...).ModifyStatement).Limit(1).Find(tx.Statement.Context)
		return err
	}},
	{"AcquireXactLock", true, func(tx *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		return gormlock.AcquireXactLock(tx, []lockkey.Key{key}, opts...)
	}},
	{"nested Transaction", true, func(tx *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		return gormlock.Transaction(tx, func(tx *gorm.DB) error { return tx.Exec("select 1").Error }, gormlock.Locking(key, opts...))
	}},
	{"implicit", false, func(db *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		return db.Scopes(gormlock.WithXactLock(key, opts...)).Create(&widget{Name: "implicit"}).Error
	}},
	{"Transaction", false, func(db *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		return gormlock.Transaction(db, func(*gorm.DB) error { return nil }, gormlock.Locking(key, opts...))
	}},
	{"Transaction at REPEATABLE READ", false, func(db *gorm.DB, key lockkey.Key, opts ...gormlock.LockOption) error {
		return gormlock.Transaction(db, func(*gorm.DB) error { return nil }, gormlock.Locking(key, opts...), gormlock.Isolation(sql.LevelRepeatableRead))
	}},
}

// usableAfter runs ask in a transaction and states that what it did to the transaction is nothing: an earlier write is
// kept, later ones work, on the same backend.
func usableAfter(t *testing.T, s *lookout, ask func(tx *gorm.DB)) {
	t.Helper()
	before, after := widget{Name: "before"}, widget{Name: "after"}
	err := s.db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&before).Error; err != nil {
			return err
		}
		pid := backendOf(t, tx)
		ask(tx)
		if err := tx.Create(&after).Error; err != nil {
			t.Errorf("the transaction is not usable: %v", err)
			return err
		}
		if now := backendOf(t, tx); now != pid {
			t.Errorf("backend %d became %d", pid, now)
		}
		return nil
	})
	if err != nil {
		t.Errorf("commit: %v", err)
		return
	}
	var n int64
	if err := s.plain.Model(&widget{}).Where("id in ?", []int64{before.ID, after.ID}).Count(&n).Error; err != nil || n != 2 {
		t.Errorf("%d of 2 rows were stored, %v", n, err)
	}
}

// samePool runs ask on a pool of one connection and states that this connection is still there.
func samePool(t *testing.T, s *lookout, ask func()) {
	t.Helper()
	pid := backendOf(t, s.db)
	ask()
	if now := backendOf(t, s.db); now != pid {
		t.Errorf("backend %d was given up for %d", pid, now)
	}
}

// throughEach runs a test through each of the doors, beside the others.
func throughEach(t *testing.T, doors []door, test func(t *testing.T, d door)) {
	t.Helper()
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

// ask asks through the door: in a transaction, which must be usable afterwards, if the door wants one.
func (d door) ask(t *testing.T, s *lookout, ask func(db *gorm.DB)) {
	t.Helper()
	if d.inside {
		usableAfter(t, s, ask)
	} else {
		ask(s.db)
	}
}

// leavesUsable asks through the door, and states that what it asked in is as usable as before: the transaction, or the pool.
func (d door) leavesUsable(t *testing.T, s *lookout, ask func(db *gorm.DB)) {
	t.Helper()
	if d.inside {
		usableAfter(t, s, ask)
	} else {
		samePool(t, s, func() { ask(s.db) })
	}
}

func TestTry(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, s *lookout) {
		for _, d := range everyDoor {
			t.Run(d.name, func(t *testing.T) {
				d.leavesUsable(t, s, func(db *gorm.DB) {
					held, free := pgtest.Key(t), pgtest.Key(t)
					release := rivalHolds(t, exclusively, held)
					if err := d.acquire(db, held, gormlock.Try()); !errors.Is(err, gormlock.ErrNotAcquired) || gormlock.IsRetryable(err) {
						t.Errorf("a lock that a rival holds: %v", err)
					}
					if locks := pgtest.Locks(t, held); len(locks) != 1 {
						t.Errorf("locks %v", locks)
					}
					release()
					for _, key := range []lockkey.Key{held, free} {
						if err := d.acquire(db, key, gormlock.Try()); err != nil {
							t.Errorf("a free lock: %v", err)
						}
					}
				})
			})
		}
	}, pgtest.MaxConns(1))
}

// TestTimeout_P20: the transaction outlives the timeout.
func TestTimeout_P20(t *testing.T) {
	t.Parallel()
	s := newLookout(t, pgtest.MaxConns(1))
	for _, d := range everyDoor {
		t.Run(d.name, func(t *testing.T) {
			d.leavesUsable(t, s, func(db *gorm.DB) {
				held := pgtest.Key(t)
				release := rivalHolds(t, exclusively, held)
				start := time.Now()
				err := d.acquire(db, held, gormlock.Timeout(20*time.Millisecond))
				if !errors.Is(err, gormlock.ErrLockTimeout) || gormlock.IsRetryable(err) {
					t.Errorf("a lock that a rival holds: %v", err)
				}
				if waited := time.Since(start); waited < 20*time.Millisecond {
					t.Errorf("gave up after %s", waited)
				}
				if locks := pgtest.Locks(t, held); len(locks) != 1 {
					t.Errorf("locks %v", locks)
				}
				release()
				if err := d.acquire(db, held, gormlock.Timeout(time.Minute)); err != nil {
					t.Errorf("a free lock: %v", err)
				}
			})
		})
	}
}

// TestTimeout_IsTheBudgetOfTheCall: the wait for one key leaves less for the next. V17
func TestTimeout_IsTheBudgetOfTheCall(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	const budget = 600 * time.Millisecond
	ways := map[string]func(tx *gorm.DB, keys []lockkey.Key) error{
		"AcquireXactLock": func(tx *gorm.DB, keys []lockkey.Key) error {
			return gormlock.AcquireXactLock(tx, keys, gormlock.Timeout(budget))
		},
		"Scopes": func(tx *gorm.DB, keys []lockkey.Key) error {
			return tx.Scopes(gormlock.WithXactLock(keys[0], gormlock.Timeout(budget)), gormlock.WithXactLock(keys[1], gormlock.Timeout(time.Hour))).
				Create(&widget{}).Error
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := []lockkey.Key{pgtest.Key(t), pgtest.Key(t)}
			slices.SortFunc(keys, lockkey.Compare)
			first := rivalHolds(t, exclusively, keys[0])
			rivalHolds(t, exclusively, keys[1])
			usableAfter(t, s, func(tx *gorm.DB) {
				// A rival that keeps the first key for most of the budget.
				freed := make(chan struct{})
				time.AfterFunc(budget*5/6, func() { first(); close(freed) })
				start := time.Now()
				err := way(tx, keys)
				if waited := time.Since(start); !errors.Is(err, gormlock.ErrLockTimeout) || waited < budget || waited > budget*5/3 {
					t.Errorf("%v after %s, want a timeout after %s", err, waited, budget)
				}
				<-freed
				if pgtest.Held(t, keys[0]) {
					t.Error("the key that was granted is held after the timeout")
				}
			})
		})
	}
}

// TestP3_LockTimeoutIsTheCallersAgain whatever it was, and whatever becomes of the call.
func TestP3_LockTimeoutIsTheCallersAgain(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.MaxConns(1))
	taken := pgtest.Key(t)
	rivalHolds(t, exclusively, taken)
	setting := func(t *testing.T, db *gorm.DB) (text string) {
		if err := db.Raw("show lock_timeout").Scan(&text).Error; err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, set := range []string{"", "set lock_timeout = '7s'", "set local lock_timeout = '8s'"} {
		calls := map[string]func(t *testing.T, tx *gorm.DB) error{
			"acquired": func(t *testing.T, tx *gorm.DB) error {
				return gormlock.AcquireXactLock(tx, []lockkey.Key{pgtest.Key(t)}, gormlock.Timeout(time.Minute))
			},
			"acquired, many": func(t *testing.T, tx *gorm.DB) error {
				return gormlock.AcquireXactLock(tx, []lockkey.Key{pgtest.Key(t), pgtest.PairKey(t)}, gormlock.Timeout(time.Minute))
			},
			"scope": func(t *testing.T, tx *gorm.DB) error {
				return tx.Scopes(gormlock.WithXactLock(pgtest.Key(t), gormlock.Timeout(time.Minute))).Exec("select 1").Error
			},
			"timed out": func(_ *testing.T, tx *gorm.DB) error {
				return gormlock.AcquireXactLock(tx, []lockkey.Key{taken}, gormlock.Timeout(time.Millisecond))
			},
			"timed out, many": func(t *testing.T, tx *gorm.DB) error {
				return gormlock.AcquireXactLock(tx, []lockkey.Key{taken, pgtest.Key(t)}, gormlock.Timeout(time.Millisecond))
			},
			"not acquired": func(t *testing.T, tx *gorm.DB) error {
				return gormlock.AcquireXactLock(tx, []lockkey.Key{taken, pgtest.Key(t)}, gormlock.Try())
			},
		}
		for name, call := range calls {
			t.Run(set+"/"+name, func(t *testing.T) {
				outside := setting(t, db)
				want := ""
				err := db.Transaction(func(tx *gorm.DB) error {
					if set != "" {
						if err := tx.Exec(set).Error; err != nil {
							return err
						}
					}
					want = setting(t, tx)
					err := call(t, tx)
					if err != nil && !errors.Is(err, gormlock.ErrLockTimeout) && !errors.Is(err, gormlock.ErrNotAcquired) {
						return err
					}
					if got := setting(t, tx); got != want {
						t.Errorf("lock_timeout is %s after the call, want %s", got, want)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if set != "set lock_timeout = '7s'" {
					want = outside
				}
				if got := setting(t, db); got != want {
					t.Errorf("lock_timeout is %s after the transaction, want %s", got, want)
				}
				db.Exec("reset lock_timeout")
			})
		}
	}
	t.Run("in the transaction that begins with the lock", func(t *testing.T) {
		for _, level := range []sql.IsolationLevel{sql.LevelDefault, sql.LevelRepeatableRead} {
			err := gormlock.Transaction(db, func(tx *gorm.DB) error {
				if got := setting(t, tx); got != "0" {
					t.Errorf("lock_timeout is %s", got)
				}
				return nil
			}, gormlock.Locking(pgtest.Key(t), gormlock.Timeout(time.Minute)), gormlock.Locking(pgtest.Key(t)), gormlock.Isolation(level))
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// TestSessionLockTimeout: without an option the session's own bound holds, and its end is the same error.
func TestSessionLockTimeout(t *testing.T) {
	t.Parallel()
	s := newLookout(t, pgtest.Param("lock_timeout", "30ms"))
	throughEach(t, everyDoor, func(t *testing.T, d door) {
		key := pgtest.Key(t)
		rivalHolds(t, exclusively, key)
		d.ask(t, s, func(db *gorm.DB) {
			if err := d.acquire(db, key); !errors.Is(err, gormlock.ErrLockTimeout) {
				t.Error(err)
			}
		})
	})
}

// TestDefaultTimeout bounds what names no bound, and only that.
func TestDefaultTimeout(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	s := &lookout{plain: pgtest.Open(t, pgtest.Through(dsn))}
	if err := s.plain.AutoMigrate(&widget{}); err != nil {
		t.Fatal(err)
	}
	s.db = pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New(gormlock.DefaultTimeout(30*time.Millisecond))))
	throughEach(t, doors, func(t *testing.T, d door) {
		key := pgtest.Key(t)
		release := rivalHolds(t, exclusively, key)
		d.ask(t, s, func(db *gorm.DB) {
			if err := d.acquire(db, key); !errors.Is(err, gormlock.ErrLockTimeout) {
				t.Errorf("without an option: %v", err)
			}
			if err := d.acquire(db, key, gormlock.Try()); !errors.Is(err, gormlock.ErrNotAcquired) {
				t.Errorf("Try: %v", err)
			}
			time.AfterFunc(200*time.Millisecond, release)
			if err := d.acquire(db, key, gormlock.Timeout(time.Minute)); err != nil {
				t.Errorf("a longer Timeout: %v", err)
			}
		})
	})
}

func TestShared(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	throughEach(t, everyDoor, func(t *testing.T, d door) {
		shared, taken := pgtest.Key(t), pgtest.Key(t)
		rivalHolds(t, together, shared)
		rivalHolds(t, exclusively, taken)
		d.ask(t, s, func(db *gorm.DB) {
			if err := d.acquire(db, shared, gormlock.Shared(), gormlock.Try()); err != nil {
				t.Errorf("two sharers: %v", err)
			}
			if err := d.acquire(db, shared, gormlock.Shared(), gormlock.Timeout(time.Minute)); err != nil {
				t.Errorf("two sharers, with a timeout: %v", err)
			}
			if err := d.acquire(db, shared, gormlock.Shared()); err != nil {
				t.Errorf("two sharers, waiting: %v", err)
			}
			if err := d.acquire(db, shared, gormlock.Try()); !errors.Is(err, gormlock.ErrNotAcquired) {
				t.Errorf("exclusive beside a sharer: %v", err)
			}
			if err := d.acquire(db, taken, gormlock.Shared(), gormlock.Try()); !errors.Is(err, gormlock.ErrNotAcquired) {
				t.Errorf("shared beside an exclusive one: %v", err)
			}
			for _, l := range pgtest.Locks(t, shared) {
				if l.Mode != "ShareLock" {
					t.Errorf("lock %+v", l)
				}
			}
		})
	})
}

// TestP8_TheSameTransactionGetsItsLockAgain, also the exclusive one after the shared one if nobody else shares it.
func TestP8_TheSameTransactionGetsItsLockAgain(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	for _, d := range everyDoor {
		if !d.inside {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			key, pair := pgtest.Key(t), pgtest.PairKey(t)
			usableAfter(t, s, func(tx *gorm.DB) {
				for _, opts := range [][]gormlock.LockOption{{gormlock.Shared()}, nil, {gormlock.Try()}, {gormlock.Timeout(time.Second)}, {gormlock.Shared(), gormlock.Try()}} {
					for _, key := range []lockkey.Key{key, pair} {
						if err := d.acquire(tx, key, opts...); err != nil {
							t.Error(err)
						}
					}
				}
			})
		})
	}
}

// TestP23_KeySpaces: the bigint and the pair with the same 64 bits are two locks.
func TestP23_KeySpaces(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	pair := pgtest.PairKey(t)
	hi, lo, _ := pair.Pair()
	bigint := lockkey.Int64(int64(hi)<<32 | int64(uint32(lo)))
	rivalHolds(t, exclusively, bigint)
	for _, d := range everyDoor {
		t.Run(d.name, func(t *testing.T) {
			d.ask(t, s, func(db *gorm.DB) {
				if err := d.acquire(db, pair, gormlock.Try()); err != nil {
					t.Errorf("the pair: %v", err)
				}
				if err := d.acquire(db, bigint, gormlock.Try()); !errors.Is(err, gormlock.ErrNotAcquired) {
					t.Errorf("the bigint: %v", err)
				}
			})
		})
	}
}

// TestOptionsHoldNoState: one value serves any number of calls, at the same time.
func TestOptionsHoldNoState(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	opts := []gormlock.LockOption{gormlock.Timeout(time.Minute), gormlock.Shared(), gormlock.AllowSnapshot()}
	a, b := pgtest.Key(t), pgtest.Key(t)
	clauseA := gormlock.XactLock(a, opts...)
	scopeB := gormlock.WithXactLock(b, opts...)
	locking := gormlock.Locking(a, opts...)
	done := make(chan error)
	for range 8 {
		go func() {
			done <- s.db.Transaction(func(tx *gorm.DB) error {
				return tx.Clauses(clauseA).Scopes(scopeB).Clauses(clauseA).Create(&widget{}).Error
			})
		}()
		go func() { done <- gormlock.Transaction(s.db, func(*gorm.DB) error { return nil }, locking, locking) }()
	}
	for range 16 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, key := range []lockkey.Key{a, b} {
		for _, l := range pgtest.Locks(t, key) {
			t.Errorf("left: %+v", l)
		}
	}
	// A lock put twice on one db is asked for twice, not merged into the first statement's.
	base := s.db.Clauses(gormlock.XactLock(a)).Session(&gorm.Session{})
	s.begin(a)
	if err := errors.Join(base.Create(&widget{}).Error, base.Clauses(gormlock.XactLock(b)).Create(&widget{}).Error, base.Create(&widget{}).Error); err != nil {
		t.Error(err)
	}
	executed, unheld := s.end()
	if len(unheld) > 0 || countLocks(executed) != 3 {
		t.Errorf("%q, unheld %q", executed, unheld)
	}
	if id, _ := b.Int64(); countOf(executed, id) != 1 {
		t.Errorf("the clause of one statement is on another: %q", executed)
	}
}

// TestManyKeys are one call, in whatever order and however often they are named.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	var keys []lockkey.Key
	for range 3 {
		keys = append(keys, pgtest.Key(t), pgtest.PairKey(t))
	}
	twice := append(slices.Clone(keys), keys...)
	for _, opts := range [][]gormlock.LockOption{nil, {gormlock.Try()}, {gormlock.Timeout(time.Minute)}, {gormlock.Shared()}, {gormlock.Shared(), gormlock.Try()}} {
		s.begin(keys[0])
		err := s.db.Transaction(func(tx *gorm.DB) error {
			if err := gormlock.AcquireXactLock(tx, twice, opts...); err != nil {
				return err
			}
			for _, key := range keys {
				if len(pgtest.Locks(t, key)) != 1 {
					t.Errorf("%s: %+v", key, pgtest.Locks(t, key))
				}
			}
			return nil
		})
		executed, _ := s.end()
		if err != nil || countLocks(executed) != 1 || len(executed) != 3 {
			t.Errorf("%v, executed %q", err, executed)
		}
	}
	t.Run("all or none", func(t *testing.T) {
		for _, busy := range keys {
			release := rivalHolds(t, exclusively, busy)
			for _, opt := range []gormlock.LockOption{gormlock.Try(), gormlock.Timeout(10 * time.Millisecond)} {
				usableAfter(t, s, func(tx *gorm.DB) {
					err := gormlock.AcquireXactLock(tx, keys, opt)
					if !errors.Is(err, gormlock.ErrNotAcquired) && !errors.Is(err, gormlock.ErrLockTimeout) {
						t.Error(err)
					}
					for _, key := range keys {
						if key != busy && pgtest.Held(t, key) {
							t.Errorf("%s is held although %s was not acquired", key, busy)
						}
					}
				})
			}
			release()
		}
	})
	t.Run("shared and exclusive in one statement", func(t *testing.T) {
		err := s.db.Transaction(func(tx *gorm.DB) error {
			err := tx.Scopes(
				gormlock.WithXactLock(keys[0], gormlock.Shared()), gormlock.WithXactLock(keys[1]),
				gormlock.WithXactLock(keys[2]), gormlock.WithXactLock(keys[3], gormlock.Shared()),
				// One key both ways is exclusive.
				gormlock.WithXactLock(keys[4], gormlock.Shared()), gormlock.WithXactLock(keys[4]),
				gormlock.WithXactLock(keys[5]), gormlock.WithXactLock(keys[5], gormlock.Shared()),
			).Create(&widget{}).Error
			for i, want := range []string{"ShareLock", "ExclusiveLock", "ExclusiveLock", "ShareLock", "ExclusiveLock", "ExclusiveLock"} {
				if locks := pgtest.Locks(t, keys[i]); len(locks) != 1 || locks[0].Mode != want {
					t.Errorf("key %d: %+v, want %s", i, locks, want)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("shared and exclusive in the BEGIN", func(t *testing.T) {
		for _, level := range []sql.IsolationLevel{sql.LevelDefault, sql.LevelSerializable} {
			err := gormlock.Transaction(s.db, func(*gorm.DB) error {
				for i, want := range []string{"ShareLock", "ExclusiveLock", "ExclusiveLock"} {
					if locks := pgtest.Locks(t, keys[i]); len(locks) != 1 || locks[0].Mode != want {
						t.Errorf("key %d: %+v, want %s", i, locks, want)
					}
				}
				return nil
			}, gormlock.Isolation(level), gormlock.Locking(keys[0], gormlock.Shared()), gormlock.Locking(keys[1]),
				gormlock.Locking(keys[2], gormlock.Shared()), gormlock.Locking(keys[2]))
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// TestStrictestOfSeveral: several locks on one statement wait as the one that waits least.
func TestStrictestOfSeveral(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	a, b := pgtest.Key(t), pgtest.Key(t)
	rivalHolds(t, exclusively, b)
	for name, c := range map[string]struct {
		scopes []func(*gorm.DB) *gorm.DB
		want   error
	}{
		"try and wait": {[]func(*gorm.DB) *gorm.DB{gormlock.WithXactLock(a, gormlock.Try()), gormlock.WithXactLock(b)}, gormlock.ErrNotAcquired},
		"try and timeout": {[]func(*gorm.DB) *gorm.DB{
			gormlock.WithXactLock(b, gormlock.Timeout(time.Hour)), gormlock.WithXactLock(a, gormlock.Try())}, gormlock.ErrNotAcquired},
		"two timeouts": {[]func(*gorm.DB) *gorm.DB{
			gormlock.WithXactLock(a, gormlock.Timeout(10*time.Millisecond)), gormlock.WithXactLock(b, gormlock.Timeout(time.Hour))}, gormlock.ErrLockTimeout},
		"timeout and wait": {[]func(*gorm.DB) *gorm.DB{
			gormlock.WithXactLock(a), gormlock.WithXactLock(b, gormlock.Timeout(10*time.Millisecond))}, gormlock.ErrLockTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			usableAfter(t, s, func(tx *gorm.DB) {
				if err := tx.Scopes(c.scopes...).Create(&widget{}).Error; !errors.Is(err, c.want) {
					t.Error(err)
				}
				if pgtest.Held(t, a) {
					t.Error("half of it is held")
				}
			})
			if err := s.db.Scopes(c.scopes...).Create(&widget{}).Error; !errors.Is(err, c.want) {
				t.Errorf("implicit: %v", err)
			}
		})
	}
}

// TestTotalOrder: calls that name the same keys in opposite orders wait for each other, never both ways. The control
// takes them one by one and deadlocks.
func TestTotalOrder(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Param("deadlock_timeout", "20ms"))
	keys := []lockkey.Key{pgtest.Key(t), pgtest.PairKey(t), pgtest.Key(t), pgtest.PairKey(t)}
	reversed := slices.Clone(keys)
	slices.Reverse(reversed)
	ways := map[string]func(keys []lockkey.Key) error{
		"AcquireXactLock": func(keys []lockkey.Key) error {
			return db.Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, keys) })
		},
		"Transaction": func(keys []lockkey.Key) error {
			var opts []gormlock.TxOption
			for _, key := range keys {
				opts = append(opts, gormlock.Locking(key, gormlock.Timeout(time.Minute)))
			}
			return gormlock.Transaction(db, func(*gorm.DB) error { return nil }, opts...)
		},
		"Transaction at REPEATABLE READ": func(keys []lockkey.Key) error {
			opts := []gormlock.TxOption{gormlock.Isolation(sql.LevelRepeatableRead)}
			for _, key := range keys {
				opts = append(opts, gormlock.Locking(key))
			}
			return gormlock.Transaction(db, func(*gorm.DB) error { return nil }, opts...)
		},
		"Scopes, shared and exclusive": func(keys []lockkey.Key) error {
			scopes := []func(*gorm.DB) *gorm.DB{gormlock.WithXactLock(keys[0], gormlock.Shared())}
			for _, key := range keys {
				scopes = append(scopes, gormlock.WithXactLock(key))
			}
			return db.Transaction(func(tx *gorm.DB) error { return tx.Scopes(scopes...).Exec("select 1").Error })
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			done := make(chan error)
			for _, keys := range [][]lockkey.Key{keys, reversed, keys, reversed} {
				go func() {
					for range 25 {
						if err := way(keys); err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
			}
			for range 4 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		})
	}
	t.Run("control: one by one deadlocks", func(t *testing.T) {
		one, other := pgtest.Key(t), pgtest.Key(t)
		var first sync.WaitGroup
		first.Add(2)
		done := make(chan error)
		for _, keys := range [][]lockkey.Key{{one, other}, {other, one}} {
			go func() {
				done <- db.Transaction(func(tx *gorm.DB) error {
					err := gormlock.AcquireXactLock(tx, keys[:1])
					first.Done()
					first.Wait()
					if err != nil {
						return err
					}
					return gormlock.AcquireXactLock(tx, keys[1:])
				})
			}()
		}
		err := errors.Join(<-done, <-done)
		if err == nil || !gormlock.IsRetryable(err) {
			t.Errorf("no deadlock: %v", err)
		}
	})
}

func TestContextEndsDuringTheWait(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	throughEach(t, everyDoor, func(t *testing.T, d door) {
		key := pgtest.Key(t)
		rivalHolds(t, exclusively, key)
		for _, opts := range [][]gormlock.LockOption{nil, {gormlock.Timeout(time.Minute)}} {
			ctx, cancel := context.WithCancelCause(context.Background())
			done := make(chan error)
			go func() {
				if !d.inside {
					done <- d.acquire(s.db.WithContext(ctx), key, opts...)
					return
				}
				done <- withinCtx(ctx, s.db, d, func(tx *gorm.DB) error { return d.acquire(tx, key, opts...) })
			}()
			pgtest.WaitBlocked(t, key, 1)
			cancel(errInner)
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("err = %v", err)
			}
			if err := s.db.Exec("SELECT 1").Error; err != nil { // the driver has closed the connection: the time is for the lock, not for another one
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(context.Background(), 30*time.Millisecond)
			defer stop()
			go func() {
				if !d.inside {
					done <- d.acquire(s.db.WithContext(ctx), key, opts...)
					return
				}
				done <- withinCtx(ctx, s.db, d, func(tx *gorm.DB) error { return d.acquire(tx, key, opts...) })
			}()
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, gormlock.ErrLockTimeout) {
				t.Errorf("err = %v", err)
			}
		}
	})
}

// withinCtx runs fn in a transaction. A door of pgx uses its connection behind the back of database/sql, which would roll back a
// transaction with a ctx on it at the same time: so its transaction has none.
func withinCtx(ctx context.Context, db *gorm.DB, d door, fn func(tx *gorm.DB) error) error {
	if !d.ofPgx() {
		return db.WithContext(ctx).Transaction(fn)
	}
	return db.Transaction(func(tx *gorm.DB) error { return fn(tx.WithContext(ctx)) })
}
