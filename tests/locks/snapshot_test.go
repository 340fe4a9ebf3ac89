package locks_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

var keepSnapshots = map[string]sql.IsolationLevel{"repeatable read": sql.LevelRepeatableRead, "serializable": sql.LevelSerializable}

// TestErrSnapshotTaken: in a transaction that keeps one snapshot a lock comes too late, whatever its options.
func TestErrSnapshotTaken(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	for name, level := range keepSnapshots {
		for _, d := range doors {
			if !d.inside {
				continue
			}
			t.Run(name+"/"+d.name, func(t *testing.T) { // not in parallel: transactions that write one table are no rivals here
				key := pgtest.Key(t)
				err := s.db.Transaction(func(tx *gorm.DB) error {
					for _, opts := range [][]gormlock.LockOption{nil, {gormlock.Try()}, {gormlock.Timeout(time.Minute)}, {gormlock.Shared()}} {
						if err := d.acquire(tx, key, opts...); !errors.Is(err, gormlock.ErrSnapshotTaken) || gormlock.IsRetryable(err) {
							t.Errorf("options %v: %v", opts, err)
						}
						if pgtest.Held(t, key) {
							t.Error("held")
						}
					}
					for _, opt := range []gormlock.LockOption{gormlock.Try(), gormlock.Timeout(time.Minute), gormlock.Shared()} {
						if err := d.acquire(tx, key, opt, gormlock.AllowSnapshot()); err != nil {
							t.Errorf("AllowSnapshot: %v", err)
						}
					}
					return tx.Create(&widget{}).Error
				}, &sql.TxOptions{Isolation: level})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	t.Run("one that forbids on a statement with one that allows", func(t *testing.T) {
		key := pgtest.Key(t)
		err := s.db.Transaction(func(tx *gorm.DB) error {
			return tx.Scopes(gormlock.WithXactLock(key, gormlock.AllowSnapshot()), gormlock.WithXactLock(key)).Find(&[]widget{}).Error
		}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		if !errors.Is(err, gormlock.ErrSnapshotTaken) {
			t.Error(err)
		}
	})
}

// TestDefaultIsolation: where a database begins its transactions at a level that keeps one snapshot, nobody has to say so.
func TestDefaultIsolation(t *testing.T) {
	t.Parallel()
	for name := range keepSnapshots {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLookout(t, pgtest.Param("default_transaction_isolation", name), pgtest.MaxConns(1))
			for _, d := range doors {
				t.Run(d.name, func(t *testing.T) {
					key, held := pgtest.Key(t), pgtest.Key(t)
					rivalHolds(t, exclusively, held)
					if d.inside {
						usableAfter(t, s, func(tx *gorm.DB) {
							if err := d.acquire(tx, key); !errors.Is(err, gormlock.ErrSnapshotTaken) {
								t.Error(err)
							}
						})
						return
					}
					samePool(t, s, func() {
						for _, opt := range []gormlock.LockOption{gormlock.Try(), gormlock.Timeout(time.Minute), gormlock.Shared(), gormlock.AllowSnapshot()} {
							if err := d.acquire(s.db, key, opt); err != nil {
								t.Error(err)
							}
						}
						if err := d.acquire(s.db, held, gormlock.Try()); !errors.Is(err, gormlock.ErrNotAcquired) {
							t.Error(err)
						}
						if err := d.acquire(s.db, held, gormlock.Timeout(10*time.Millisecond)); !errors.Is(err, gormlock.ErrLockTimeout) {
							t.Error(err)
						}
					})
					if len(pgtest.Locks(t, key)) > 0 || len(pgtest.Locks(t, held)) != 1 {
						t.Errorf("left %v %v", pgtest.Locks(t, key), pgtest.Locks(t, held))
					}
				})
			}
			t.Run("READ COMMITTED on request", func(t *testing.T) {
				key := pgtest.Key(t)
				err := gormlock.Transaction(s.db, func(tx *gorm.DB) error {
					return tx.Scopes(gormlock.WithXactLock(key)).Find(&[]widget{}).Error
				}, gormlock.Isolation(sql.LevelReadCommitted), gormlock.Locking(pgtest.Key(t)))
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestP4_WhoeverWaitedReadsWhatTheHolderWrote, with the controls that read the row as it was before the wait.
func TestP4_WhoeverWaitedReadsWhatTheHolderWrote(t *testing.T) {
	t.Parallel()
	read := func(tx *gorm.DB, w *widget) (n int, err error) {
		err = tx.Model(&widget{}).Where("id = ?", w.ID).Pluck("n", &n).Error
		return n, err
	}
	transaction := func(opts ...gormlock.TxOption) func(*gorm.DB, *widget, lockkey.Key) (int, error) {
		return func(db *gorm.DB, w *widget, key lockkey.Key) (n int, err error) {
			err = gormlock.Transaction(db, func(tx *gorm.DB) (err error) {
				n, err = read(tx, w)
				return err
			}, append(opts, gormlock.Locking(key))...)
			return n, err
		}
	}
	for name, c := range map[string]struct {
		want int
		opts []pgtest.Option
		run  func(db *gorm.DB, w *widget, key lockkey.Key) (int, error)
	}{
		"Transaction":                                    {1, nil, transaction()},
		"Transaction at REPEATABLE READ":                 {1, nil, transaction(gormlock.Isolation(sql.LevelRepeatableRead))},
		"Transaction at SERIALIZABLE":                    {1, nil, transaction(gormlock.Isolation(sql.LevelSerializable))},
		"Transaction at REPEATABLE READ, prepared":       {1, []pgtest.Option{pgtest.PrepareStmt()}, transaction(gormlock.Isolation(sql.LevelRepeatableRead))},
		"Transaction where REPEATABLE READ is a default": {1, []pgtest.Option{pgtest.Param("default_transaction_isolation", "repeatable read")}, transaction()},
		"statement": {1, nil, func(db *gorm.DB, w *widget, key lockkey.Key) (n int, err error) {
			err = db.Transaction(func(tx *gorm.DB) (err error) {
				n, err = read(tx.Scopes(gormlock.WithXactLock(key)), w)
				return err
			})
			return n, err
		}},
		"implicit where REPEATABLE READ is a default": {2, []pgtest.Option{pgtest.Param("default_transaction_isolation", "repeatable read")},
			func(db *gorm.DB, w *widget, key lockkey.Key) (n int, err error) {
				// With the older snapshot this is a serialization failure.
				if err := db.Scopes(gormlock.WithXactLock(key)).Model(w).Update("n", gorm.Expr("n + 1")).Error; err != nil {
					return 0, err
				}
				return read(db, w)
			}},
		"control: the snapshot before the lock": {0, nil, func(db *gorm.DB, w *widget, key lockkey.Key) (n int, err error) {
			err = db.Transaction(func(tx *gorm.DB) (err error) {
				n, err = read(tx.Scopes(gormlock.WithXactLock(key, gormlock.AllowSnapshot())), w)
				return err
			}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
			return n, err
		}},
		"control: lock and read in one statement": {0, nil, func(db *gorm.DB, w *widget, key lockkey.Key) (n int, err error) {
			id, _ := key.Int64()
			err = db.Raw("with l as materialized (select pg_advisory_xact_lock(?)) select n from l, widgets where id = ?", id, w.ID).Scan(&n).Error
			return n, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLookout(t, c.opts...)
			w, key := s.seed(t), pgtest.Key(t)
			holder := s.plain.Begin()
			defer holder.Rollback()
			id, _ := key.Int64()
			if err := errors.Join(holder.Exec("select pg_advisory_xact_lock(?)", id).Error, holder.Exec("update widgets set n = 1 where id = ?", w.ID).Error); err != nil {
				t.Fatal(err)
			}
			type answer struct {
				n   int
				err error
			}
			done := make(chan answer)
			go func() {
				n, err := c.run(s.db, w, key)
				done <- answer{n, err}
			}()
			pgtest.WaitBlocked(t, key, 1)
			if err := holder.Commit().Error; err != nil {
				t.Fatal(err)
			}
			if got := <-done; got.err != nil || got.n != c.want {
				t.Errorf("read %d, %v, want %d", got.n, got.err, c.want)
			}
		})
	}
}

// TestV9_NoSessionLockIsLeft by a transaction at REPEATABLE READ or above that does not come to begin: its lock is the
// session's for a moment, and a session goes back to the pool.
func TestV9_NoSessionLockIsLeft(t *testing.T) {
	t.Parallel()
	s := newLookout(t, pgtest.MaxConns(1), pgtest.Param("default_transaction_deferrable", "on"), pgtest.Param("statement_timeout", "2s"))
	key := pgtest.Key(t)

	// A read-only serializable transaction that is deferrable waits for those that write to end, after it has its lock.
	ctx := context.Background()
	writer := pgtest.Conn(t)
	for _, sql := range []string{"begin isolation level serializable not deferrable", "select pg_current_xact_id()", "select count(*) from pg_class"} {
		if _, err := writer.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	err := gormlock.Transaction(s.db, func(*gorm.DB) error { return nil }, gormlock.Locking(key), gormlock.Isolation(sql.LevelSerializable), gormlock.ReadOnly())
	if err == nil {
		t.Error("began: the server did not do what this test is about")
	}
	pgtest.AssertFree(t, key)
	if err := s.db.Create(&widget{}).Error; err != nil {
		t.Errorf("the pool of one: %v", err)
	}
}

// TestErrSnapshotTaken_PlainTransactions: who begins without gormlock's pool has the snapshot before the lock, and is told.
func TestErrSnapshotTaken_PlainTransactions(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	through, err := s.proxy.DSN(pgtest.SchemaDSN(t))
	if err != nil {
		t.Fatal(err)
	}
	plain := pgtest.Open(t, pgtest.Through(through), pgtest.Plugin(gormlock.New(gormlock.PlainTransactions())))
	key := pgtest.Key(t)
	begin := func(db *gorm.DB, opts ...gormlock.LockOption) error {
		return gormlock.Transaction(db, func(*gorm.DB) error { return nil }, gormlock.Locking(key, opts...), gormlock.Isolation(sql.LevelRepeatableRead))
	}
	connection := func(opts ...gormlock.LockOption) error {
		return s.db.Connection(func(conn *gorm.DB) error { return begin(conn, opts...) })
	}
	for name, err := range map[string]error{"PlainTransactions": begin(plain), "Connection": connection()} {
		if !errors.Is(err, gormlock.ErrSnapshotTaken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := errors.Join(begin(plain, gormlock.AllowSnapshot()), connection(gormlock.AllowSnapshot())); err != nil {
		t.Errorf("AllowSnapshot: %v", err)
	}
	for _, c := range cells() {
		t.Run(c.name, func(t *testing.T) {
			s.holds(t, c, func(run func(*gorm.DB) error) error { return plain.Transaction(run) })
			if !c.reads {
				s.holds(t, c, func(run func(*gorm.DB) error) error { return run(plain) })
			}
		})
	}
}
