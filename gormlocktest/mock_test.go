package gormlocktest_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/lockkey"
)

type task struct {
	ID    int64
	State string
}

const soon = 20 * time.Millisecond

func nothing(*gorm.DB) error { return nil }

// TestLocksOfKeys: what is expected of advisory locks is what gormlock sends.
func TestLocksOfKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]scene{
		"a transaction with a lock": {
			expect: func(s *stage) {
				gormlocktest.ExpectBegin(s, s.mock, s.keys[:1])
				gormlocktest.ExpectCommit(s.mock)
			},
			do: func(s *stage) error { return gormlock.Transaction(s.db, nothing, gormlock.Locking(s.keys[0])) },
		},
		"with two, and a timeout": {
			expect: func(s *stage) {
				gormlocktest.ExpectBegin(s, s.mock, s.keys, gormlock.Timeout(time.Second))
				gormlocktest.ExpectCommit(s.mock)
			},
			do: func(s *stage) error {
				return gormlock.Transaction(s.db, nothing, gormlock.Locking(s.keys[1], gormlock.Timeout(time.Second)), gormlock.Locking(s.keys[0]))
			},
		},
		"with the timeout of the plugin": {
			plugin: []gormlock.Option{gormlock.DefaultTimeout(time.Minute)},
			expect: func(s *stage) {
				gormlocktest.ExpectBegin(s, s.mock, s.keys[:1], gormlock.Timeout(time.Minute))
				gormlocktest.ExpectCommit(s.mock)
			},
			do: func(s *stage) error { return gormlock.Transaction(s.db, nothing, gormlock.Locking(s.keys[0])) },
		},
		"that is refused": {
			expect: func(s *stage) {
				gormlocktest.ExpectBegin(s, s.mock, s.keys, gormlock.Try()).WillReturnResult(gormlocktest.Refused)
				gormlocktest.ExpectRollback(s.mock)
			},
			real: func(s *stage) { s.hold(s.keys[1]) },
			do: func(s *stage) error {
				return gormlock.Transaction(s.db, nothing, gormlock.Locking(s.keys[0], gormlock.Try()), gormlock.Locking(s.keys[1]))
			},
			want: gormlock.ErrNotAcquired,
		},
		"that comes too late": {
			expect: func(s *stage) {
				gormlocktest.ExpectBegin(s, s.mock, s.keys[:1], gormlock.Timeout(soon)).WillReturnError(gormlocktest.ErrLockNotAvailable)
				gormlocktest.ExpectRollback(s.mock)
			},
			real: func(s *stage) { s.hold(s.keys[0]) },
			do: func(s *stage) error {
				return gormlock.Transaction(s.db, nothing, gormlock.Locking(s.keys[0], gormlock.Timeout(soon)))
			},
			want: gormlock.ErrLockTimeout,
		},
		"whose function fails": {
			expect: func(s *stage) {
				gormlocktest.ExpectBegin(s, s.mock, s.keys[:1])
				gormlocktest.ExpectRollback(s.mock)
			},
			do: func(s *stage) error {
				return gormlock.Transaction(s.db, func(*gorm.DB) error { return sql.ErrNoRows }, gormlock.Locking(s.keys[0]))
			},
			want: sql.ErrNoRows,
		},
		"a statement with a lock": {
			expect: func(s *stage) {
				gormlocktest.ExpectBegin(s, s.mock, s.keys[:1])
				s.mock.ExpectExec(`^UPDATE "tasks"`).WillReturnResult(sqlmock.NewResult(0, 1))
				gormlocktest.ExpectCommit(s.mock)
			},
			do: func(s *stage) error {
				return s.db.Scopes(gormlock.WithXactLock(s.keys[0])).Model(&task{ID: 1}).Update("state", "x").Error
			},
		},
		"a lock in an open transaction": {
			expect: func(s *stage) {
				s.mock.ExpectBegin()
				gormlocktest.ExpectAcquire(s, s.mock, s.keys, gormlock.Shared())
				s.mock.ExpectCommit()
			},
			do: func(s *stage) error {
				return s.db.Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, s.keys, gormlock.Shared()) })
			},
		},
		"one that is refused there": {
			expect: func(s *stage) {
				s.mock.ExpectBegin()
				gormlocktest.ExpectAcquire(s, s.mock, s.keys[:1], gormlock.Try()).WillReturnResult(gormlocktest.Refused)
				s.mock.ExpectRollback()
			},
			real: func(s *stage) { s.hold(s.keys[0]) },
			do:   func(s *stage) error { return s.acquire(s.keys[:1], gormlock.Try()) },
			want: gormlock.ErrNotAcquired,
		},
		"two that are refused there": {
			expect: func(s *stage) {
				s.mock.ExpectBegin()
				gormlocktest.ExpectAcquire(s, s.mock, s.keys, gormlock.Try()).WillReturnError(gormlocktest.ErrRefused)
				gormlocktest.ExpectUndo(s.mock)
				s.mock.ExpectRollback()
			},
			real: func(s *stage) { s.hold(s.keys[0]) },
			do:   func(s *stage) error { return s.acquire(s.keys, gormlock.Try()) },
			want: gormlock.ErrNotAcquired,
		},
		"that come too late there": {
			expect: func(s *stage) {
				s.mock.ExpectBegin()
				gormlocktest.ExpectAcquire(s, s.mock, s.keys, gormlock.Timeout(soon)).WillReturnError(gormlocktest.ErrLockNotAvailable)
				gormlocktest.ExpectUndo(s.mock)
				s.mock.ExpectRollback()
			},
			real: func(s *stage) { s.hold(s.keys[0]) },
			do:   func(s *stage) error { return s.acquire(s.keys, gormlock.Timeout(soon)) },
			want: gormlock.ErrLockTimeout,
		},
		"with PlainTransactions": {
			plugin: []gormlock.Option{gormlock.PlainTransactions()},
			expect: func(s *stage) {
				s.mock.ExpectBegin()
				gormlocktest.ExpectAcquire(s, s.mock, s.keys[:1])
				s.mock.ExpectCommit()
			},
			do: func(s *stage) error { return gormlock.Transaction(s.db, nothing, gormlock.Locking(s.keys[0])) },
		},
		"on one connection": {
			expect: func(s *stage) {
				s.mock.ExpectBegin()
				gormlocktest.ExpectAcquire(s, s.mock, s.keys[:1])
				s.mock.ExpectCommit()
			},
			do: func(s *stage) error {
				return s.db.Connection(func(db *gorm.DB) error { return gormlock.Transaction(db, nothing, gormlock.Locking(s.keys[0])) })
			},
		},
		"with a second attempt": {
			expect: func(s *stage) {
				gormlocktest.ExpectBegin(s, s.mock, s.keys[:1])
				gormlocktest.ExpectRollback(s.mock)
				gormlocktest.ExpectBegin(s, s.mock, s.keys[:1])
				gormlocktest.ExpectCommit(s.mock)
			},
			do: func(s *stage) error {
				runs := 0
				return gormlock.Transaction(s.db, func(*gorm.DB) error {
					if runs++; runs == 1 {
						return &pgconn.PgError{Code: "40001"}
					}
					return nil
				}, gormlock.Locking(s.keys[0]), gormlock.Attempts(2))
			},
		},
		"inside of another transaction": {
			expect: func(s *stage) {
				gormlocktest.ExpectBegin(s, s.mock, s.keys[:1])
				s.mock.ExpectExec(`^SAVEPOINT sp`).WillReturnResult(sqlmock.NewResult(0, 0))
				gormlocktest.ExpectAcquire(s, s.mock, s.keys[1:])
				gormlocktest.ExpectCommit(s.mock)
			},
			do: func(s *stage) error {
				return gormlock.Transaction(s.db, func(tx *gorm.DB) error {
					return gormlock.Transaction(tx, nothing, gormlock.Locking(s.keys[1]))
				}, gormlock.Locking(s.keys[0]))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.play(t)
		})
	}
}

// acquire takes the locks in a transaction.
func (s *stage) acquire(keys []lockkey.Key, opts ...gormlock.LockOption) error {
	return s.db.Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, keys, opts...) })
}

// TestBeginTx: what is expected of Transaction is what it sends with the same options, at every isolation level.
func TestBeginTx(t *testing.T) {
	t.Parallel()
	options := map[string]func(keys []lockkey.Key) []gormlock.TxOption{
		"read only": func(keys []lockkey.Key) []gormlock.TxOption {
			return []gormlock.TxOption{gormlock.ReadOnly(), gormlock.Locking(keys[0])}
		},
		"locks with options of their own": func(keys []lockkey.Key) []gormlock.TxOption {
			return []gormlock.TxOption{gormlock.Locking(keys[0], gormlock.Shared()), gormlock.Locking(keys[1]), gormlock.Attempts(3)}
		},
	}
	for _, level := range []sql.IsolationLevel{
		sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSnapshot, sql.LevelSerializable,
	} {
		options[level.String()] = func(keys []lockkey.Key) []gormlock.TxOption {
			return []gormlock.TxOption{gormlock.Isolation(level), gormlock.Locking(keys[0], gormlock.Timeout(time.Second)), gormlock.Locking(keys[1])}
		}
	}
	for name, of := range options {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene{
				expect: func(s *stage) {
					gormlocktest.ExpectBeginTx(s, s.mock, of(s.keys)...)
					gormlocktest.ExpectCommit(s.mock)
				},
				do: func(s *stage) error { return gormlock.Transaction(s.db, nothing, of(s.keys)...) },
			}.play(t)
		})
	}
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		of := func(keys []lockkey.Key) []gormlock.TxOption {
			return []gormlock.TxOption{gormlock.Isolation(sql.LevelSerializable), gormlock.Locking(keys[0], gormlock.Try())}
		}
		scene{
			expect: func(s *stage) {
				gormlocktest.ExpectBeginTx(s, s.mock, of(s.keys)...).WillReturnError(gormlocktest.ErrRefused)
				gormlocktest.ExpectRollback(s.mock)
			},
			real: func(s *stage) { s.hold(s.keys[0]) },
			do:   func(s *stage) error { return gormlock.Transaction(s.db, nothing, of(s.keys)...) },
			want: gormlock.ErrNotAcquired,
		}.play(t)
	})
	t.Run("without a lock", func(t *testing.T) {
		t.Parallel()
		scene{
			expect: func(s *stage) {
				s.mock.ExpectBegin()
				s.mock.ExpectCommit()
			},
			do: func(s *stage) error {
				return gormlock.Transaction(s.db, nothing, gormlock.Isolation(sql.LevelSerializable))
			},
		}.play(t)
	})
}

// TestExpectationsThatCannotBeMet: they end the test, and say why.
func TestExpectationsThatCannotBeMet(t *testing.T) {
	t.Parallel()
	pool, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	for name, expect := range map[string]func(j *judged){
		"no keys":           func(j *judged) { gormlocktest.ExpectBegin(j, mock, nil) },
		"invalid lock key":  func(j *judged) { gormlocktest.ExpectAcquire(j, mock, []lockkey.Key{gormlock.Key(1.5)}) },
		"mock.ExpectBegin":  func(j *judged) { gormlocktest.ExpectBeginTx(j, mock, gormlock.Isolation(sql.LevelSerializable)) },
		"Attempts(0)":       func(j *judged) { gormlocktest.ExpectBeginTx(j, mock, gormlock.Attempts(0)) },
		"Timeout(-1ns)":     func(j *judged) { gormlocktest.ExpectRowLock(j, mock, gormlock.Timeout(-1)) },
		"empty key":         func(j *judged) { gormlocktest.ExpectOnce(j, mock, "") },
		"cannot be stored":  func(j *judged) { gormlocktest.ExpectOnceStored(j, mock, "k", func() {}) },
		"json: unsupported": func(j *judged) { gormlocktest.ExpectOnceFound(j, mock, "k", func() {}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &judged{TB: t}
			j.run(func() { expect(j) })
			j.says(t, name)
		})
	}
}
