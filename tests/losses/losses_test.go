package losses_test

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// loss is a lock that is held, the context that ends with it, and the way to lose it.
type loss struct {
	ctx  context.Context
	lose func()
	is   error
}

var calls atomic.Int64 // each loss has a key of its own

var losses = map[string]func(*testing.T, *gorm.DB) loss{
	"session lock": func(t *testing.T, _ *gorm.DB) loss {
		m, err := sessionlock.Open(t.Context(), pgtest.SchemaDSN(t))
		stand.Must(t, err)
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		l, err := m.Acquire(t.Context(), lockkey.Of(t.Name(), calls.Add(1)))
		stand.Must(t, err)
		ctx, stop := l.Bind(t.Context())
		t.Cleanup(stop)
		return loss{ctx, func() { pgtest.Kill(t, l.PID()) }, sessionlock.ErrLost}
	},
	"lease": func(t *testing.T, db *gorm.DB) loss {
		pool, err := db.DB()
		stand.Must(t, err)
		stand.Must(t, lease.Migrate(t.Context(), pool))
		m, err := lease.New(t.Context(), pool)
		stand.Must(t, err)
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		l, err := m.Acquire(t.Context(), lockkey.Of("loss", calls.Add(1)), time.Minute)
		stand.Must(t, err)
		ctx, stop := l.Bind(t.Context())
		t.Cleanup(stop)
		return loss{ctx, func() {
			_, err := pool.ExecContext(t.Context(), "UPDATE gormlock_lease SET holder = 'somebody else', expires_at = now() + interval '1 hour'")
			stand.Must(t, err)
			if err := l.Renew(t.Context()); !errors.Is(err, lease.ErrLost) {
				t.Errorf("renewed: %v", err)
			}
		}, lease.ErrLost}
	},
}

// door is a way to write, or to take what a write needs. db is bound to the context of the lock.
type door struct {
	outside func(db *gorm.DB) error // no transaction is open; nil: it needs one
	inside  func(tx *gorm.DB) error // in a transaction
}

func both(call func(db *gorm.DB) error) door { return door{call, call} }

func doors(key lockkey.Key, token fence.Token) map[string]door {
	one := func(tx *gorm.DB) (int, error) {
		return 1, tx.Model(&stand.Account{}).Where("id = 1").Update("balance", 9).Error
	}
	keys := []lockkey.Key{key}
	in := func(call func(tx *gorm.DB) error) door {
		return door{func(db *gorm.DB) error { return gormlock.Transaction(db, call, gormlock.Attempts(3)) }, call}
	}
	return map[string]door{
		"Save":         both(func(db *gorm.DB) error { return db.Save(&stand.Account{ID: 1, Balance: 9, Version: 1}).Error }),
		"Create":       both(func(db *gorm.DB) error { return db.Create(&stand.Account{ID: 1}).Error }),
		"Create batch": both(func(db *gorm.DB) error { return db.CreateInBatches(&[]stand.Account{{ID: 1}, {ID: 3}}, 1).Error }),
		"Update":       both(func(db *gorm.DB) error { return db.Model(&stand.Account{ID: 1, Version: 1}).Update("balance", 9).Error }),
		"UpdateColumn": both(func(db *gorm.DB) error {
			return db.Session(&gorm.Session{SkipDefaultTransaction: true}).Model(&stand.Account{ID: 1, Version: 1}).UpdateColumn("balance", 9).Error
		}),
		"unversioned": both(func(db *gorm.DB) error { return db.Table("accounts").Where("id = 1").Update("balance", 9).Error }),
		"Delete":      both(func(db *gorm.DB) error { return db.Delete(&stand.Account{ID: 1, Version: 1}).Error }),
		"gorm.G": both(func(db *gorm.DB) error {
			return stand.ErrorOf(gorm.G[stand.Account](db).Where("id = 1").Update(db.Statement.Context, "balance", 9))
		}),
		"Exec": both(func(db *gorm.DB) error { return db.Exec("UPDATE accounts SET balance = 9 WHERE id = 1").Error }),
		"Raw": both(func(db *gorm.DB) error {
			return db.Raw("UPDATE accounts SET balance = 9 WHERE id = 1 RETURNING id").Scan(new(int64)).Error
		}),
		"Rows": both(func(db *gorm.DB) error {
			rows, err := db.Raw("UPDATE accounts SET balance = 9 WHERE id = 1 RETURNING id").Rows()
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
			}
			return rows.Err()
		}),
		"Row": both(func(db *gorm.DB) error {
			return db.Raw("UPDATE accounts SET balance = 9 WHERE id = 1 RETURNING id").Row().Scan(new(int64))
		}),
		"Row of a model": both(func(db *gorm.DB) error {
			return db.Model(&stand.Account{}).Clauses(clause.Locking{Strength: "UPDATE"}).Where("id = 1").Select("id").Row().Scan(new(int64))
		}),
		"SavePoint": {inside: func(tx *gorm.DB) error { // whose error GORM's driver drops
			return errors.Join(tx.SavePoint("x").Error, tx.Commit().Error)
		}},
		"nested": in(func(tx *gorm.DB) error {
			return tx.Transaction(func(tx *gorm.DB) error { return tx.Save(&stand.Account{ID: 1, Version: 1}).Error })
		}),
		"Commit": {inside: func(tx *gorm.DB) error { return tx.Commit().Error }},
		"Begin": {outside: func(db *gorm.DB) error {
			tx := db.Begin()
			defer tx.Rollback()
			if tx.Error != nil {
				return tx.Error
			}
			return tx.Save(&stand.Account{ID: 1, Version: 1}).Error
		}},
		"Touch": both(func(db *gorm.DB) error { return gormlock.Touch(db, &stand.Account{ID: 1, Version: 1}) }),
		"Claim": both(func(db *gorm.DB) error {
			return stand.ErrorOf(gormlock.Claim[stand.Account](db, 1, map[string]any{"balance": 9}, func(q *gorm.DB) *gorm.DB { return q.Where("pg_advisory_xact_lock(?) IS NOT NULL", mustInt(key)) }))
		}),
		"implicit lock": both(func(db *gorm.DB) error {
			return db.Scopes(gormlock.WithXactLock(key)).Create(&stand.Account{ID: 5}).Error
		}),
		"Transaction": both(func(db *gorm.DB) error {
			return gormlock.Transaction(db, func(tx *gorm.DB) error { return tx.Save(&stand.Account{ID: 1, Version: 1}).Error })
		}),
		"Locking": both(func(db *gorm.DB) error {
			return gormlock.Transaction(db, func(*gorm.DB) error { return nil }, gormlock.Locking(key))
		}),
		"db.Transaction": both(func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Save(&stand.Account{ID: 1, Version: 1}).Error })
		}),
		"AcquireXactLock": in(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, keys) }),
		"its Timeout":     in(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, keys, gormlock.Timeout(time.Minute)) }),
		"Once":            in(func(tx *gorm.DB) error { return stand.ErrorOf(gormlock.Once(tx, "key", one)) }),
		"LockRow":         in(func(tx *gorm.DB) error { return gormlock.LockRow(tx, &stand.Account{ID: 1}) }),
		"LockRows":        in(func(tx *gorm.DB) error { return gormlock.LockRows(tx, &[]stand.Account{{ID: 1}}) }),
		"VerifyVersion":   in(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx, &stand.Account{ID: 1, Version: 1}) }),
		"row lock": in(func(tx *gorm.DB) error {
			return tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Timeout(time.Minute))).First(&stand.Account{}, 1).Error
		}),
		"FenceFor": in(func(tx *gorm.DB) error { return stand.ErrorOf(gormlock.FenceFor(tx, key)) }),
		"FenceTx":  in(func(tx *gorm.DB) error { return gormlock.FenceTx(tx, token) }),
		"advisory.Acquire": in(func(tx *gorm.DB) error {
			return advisory.Acquire(tx.Statement.Context, tx.Statement.ConnPool.(*sql.Tx), keys) //nolint:forcetypeassert // it is one
		}),
	}
}

func mustInt(key lockkey.Key) int64 {
	id, _ := key.Int64()
	return id
}

// Whatever a lost lock's context cuts off says so, and not only that a context was canceled: before the call, in the middle of
// its wait, and in a transaction that was begun before.
func TestErrLost(t *testing.T) {
	t.Parallel()
	stand.Beside(t, losses, func(t *testing.T, hold func(*testing.T, *gorm.DB) loss) {
		db := stand.Fenced(t, []any{&stand.Account{}})
		stand.Must(t, gormlock.MigrateOnce(db))
		stand.Must(t, db.Create(&[]stand.Account{{ID: 1, Balance: 1}, {ID: 2}}).Error)
		key := pgtest.Key(t, t.Name())
		for name, d := range doors(key, stand.Issue(t, db, "loss")) {
			t.Run(name, func(t *testing.T) { d.mustSayLost(t, db, key, hold) })
		}
	})
}

func (d door) mustSayLost(t *testing.T, db *gorm.DB, key lockkey.Key, hold func(*testing.T, *gorm.DB) loss) {
	must := func(when string, l loss, err error) {
		t.Helper()
		if !errors.Is(err, l.is) {
			t.Errorf("%s: %v", when, err)
		}
	}
	if d.outside != nil {
		l := hold(t, db)
		l.lose()
		pgtest.Await(t, "the end of the context", l.ctx.Done())
		must("after the loss", l, d.outside(db.WithContext(l.ctx)))

		l = hold(t, db)
		blocked(t, db, key, l.lose, func() { must("during the call", l, d.outside(db.WithContext(l.ctx))) })
	}
	if d.inside == nil {
		return
	}
	l := hold(t, db)
	tx := db.WithContext(l.ctx).Begin()
	stand.Must(t, tx.Error)
	l.lose()
	pgtest.Await(t, "the end of the context", l.ctx.Done())
	must("in a transaction", l, d.inside(tx))
	tx.Rollback()
}

// The loss may come after the last statement and before the commit, and end the context of a connection.
func TestErrLost_beforeTheCommit(t *testing.T) {
	t.Parallel()
	stand.Beside(t, losses, func(t *testing.T, hold func(*testing.T, *gorm.DB) loss) {
		stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
			db := stand.Versioned(t, []any{&stand.Account{}}, opts...)
			stand.Must(t, db.Create(&stand.Account{ID: 1, Balance: 1}).Error)
			write := func(l loss) func(tx *gorm.DB) error {
				return func(tx *gorm.DB) error {
					if err := tx.Model(&stand.Account{}).Where("id = 1").Clauses(gormlock.IgnoreVersion()).Update("balance", 9).Error; err != nil {
						return err
					}
					l.lose()
					pgtest.Await(t, "the end of the context", l.ctx.Done())
					return nil
				}
			}
			for name, run := range map[string]func(db *gorm.DB, fn func(tx *gorm.DB) error) error{
				"db.Transaction":       func(db *gorm.DB, fn func(tx *gorm.DB) error) error { return db.Transaction(fn) },
				"gormlock.Transaction": func(db *gorm.DB, fn func(tx *gorm.DB) error) error { return gormlock.Transaction(db, fn) },
				"Begin": func(db *gorm.DB, fn func(tx *gorm.DB) error) error {
					tx := db.Begin()
					defer tx.Rollback()
					if err := fn(tx); err != nil {
						return err
					}
					return tx.Commit().Error
				},
				"nested": func(db *gorm.DB, fn func(tx *gorm.DB) error) error {
					return db.Transaction(func(tx *gorm.DB) error { return tx.Transaction(fn) })
				},
			} {
				t.Run(name, func(t *testing.T) {
					l := hold(t, db)
					if err := run(db.WithContext(l.ctx), write(l)); !errors.Is(err, l.is) || !errors.Is(err, context.Canceled) {
						t.Errorf("%v", err)
					}
					if stored := stand.Row[stand.Account](t, db, 1); stored.Balance != 1 {
						t.Errorf("it was committed: %+v", stored)
					}
				})
			}
			for name, write := range map[string]func(tx *gorm.DB) error{
				"Connection": func(tx *gorm.DB) error { return tx.Save(&stand.Account{ID: 1, Version: 1}).Error },
				"Connection, Row": func(tx *gorm.DB) error {
					return tx.Raw("UPDATE accounts SET balance = 9 WHERE id = 1 RETURNING id").Row().Scan(new(int64))
				},
				"Connection, Transaction": func(tx *gorm.DB) error {
					return gormlock.Transaction(tx, func(tx *gorm.DB) error { return tx.Save(&stand.Account{ID: 1, Version: 1}).Error })
				},
			} {
				t.Run(name, func(t *testing.T) {
					l := hold(t, db)
					err := db.WithContext(l.ctx).Connection(func(tx *gorm.DB) error {
						l.lose()
						pgtest.Await(t, "the end of the context", l.ctx.Done())
						return write(tx)
					})
					if !errors.Is(err, l.is) {
						t.Errorf("%v", err)
					}
				})
			}
		})
	})
}

// blocked runs call while a rival has all that it wants, and do once it waits for it.
func blocked(t *testing.T, db *gorm.DB, key lockkey.Key, do, call func()) {
	t.Helper()
	rival := db.Begin()
	defer rival.Rollback()
	stand.Must(t, rival.Exec("LOCK TABLE accounts, gormlock_once, gormlock_fence IN ACCESS EXCLUSIVE MODE").Error)
	stand.Must(t, gormlock.AcquireXactLock(rival, []lockkey.Key{key}))
	var pid int
	stand.Must(t, rival.Raw("SELECT pg_backend_pid()").Scan(&pid).Error)
	done := make(chan struct{})
	go func() { defer close(done); call() }()
	waits := func() (n int) {
		stand.Must(t, db.Raw("SELECT count(*) FROM pg_stat_activity WHERE ? = ANY(pg_blocking_pids(pid))", pid).Scan(&n).Error)
		return n
	}
	for waits() == 0 {
		select {
		case <-done:
			t.Error("it did not wait")
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
	do()
	pgtest.Await(t, "the end of the call", done)
}
