package locks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// TestLockIsOneTransactions: the lock that travels with the BEGIN of a statement's own transaction is asked for by no
// other transaction that begins under the statement's context, in a hook say, even if a plugin has wrapped the context.
func TestLockIsOneTransactions(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]bool{"": false, "wrapped": true} {
		t.Run("context "+name, func(t *testing.T) {
			t.Parallel()
			s := newLookout(t)
			if wrap {
				type mark struct{}
				if err := s.db.Callback().Create().Before("gorm:begin_transaction").Register("wraps", func(db *gorm.DB) {
					db.Statement.Context = context.WithValue(db.Statement.Context, mark{}, true)
				}); err != nil {
					t.Fatal(err)
				}
			}
			key := pgtest.Key(t)
			ran := false
			if err := s.db.Callback().Create().After("gorm:save_before_associations").Before("gorm:create").Register("another", func(db *gorm.DB) {
				if ran {
					return
				}
				ran = true
				if !pgtest.Held(t, key) {
					t.Error("not held")
				}
				ctx, cancel := context.WithTimeout(db.Statement.Context, 5*time.Second)
				defer cancel()
				err := s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return tx.Exec("select 1").Error })
				if err != nil {
					t.Errorf("another transaction: %v", err)
				}
			}); err != nil {
				t.Fatal(err)
			}
			s.begin(key)
			err := s.db.Scopes(gormlock.WithXactLock(key)).Create(&widget{}).Error
			executed, _ := s.end()
			if err != nil || !ran || countLocks(executed) != 1 {
				t.Errorf("%v, executed %q", err, executed)
			}
		})
	}
}

// TestPanic in a callback frees the lock and gives the connection back.
func TestPanic(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, s *lookout) {
		key := pgtest.Key(t)
		caught := func(run func() error) (caught any) {
			defer func() { caught = recover() }()
			_ = run()
			return nil
		}
		if caught(func() error {
			return gormlock.Transaction(s.db, func(*gorm.DB) error { panic(errInner) }, gormlock.Locking(key), gormlock.Attempts(3))
		}) != any(errInner) {
			t.Error("the panic was swallowed")
		}
		if caught(func() error {
			return s.db.Transaction(func(tx *gorm.DB) error {
				if err := tx.Scopes(gormlock.WithXactLock(key)).Exec("select 1").Error; err != nil {
					t.Error(err)
				}
				panic(errInner)
			})
		}) != any(errInner) {
			t.Error("the panic was swallowed")
		}
		if pgtest.Held(t, key) {
			t.Error("held after the panic")
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.db.WithContext(ctx).Create(&widget{}).Error; err != nil {
			t.Errorf("the pool of one: %v", err)
		}
	}, pgtest.MaxConns(1))
}

// TestPreloadWithALock: a lock on the preload itself is a lock like others.
func TestPreloadWithALock(t *testing.T) {
	t.Parallel()
	s := newLookout(t)
	w, key := s.seed(t), pgtest.Key(t)
	preload := func(db *gorm.DB) error {
		return db.Preload("Parts", func(db *gorm.DB) *gorm.DB { return db.Scopes(gormlock.WithXactLock(key)) }).First(&widget{}, w.ID).Error
	}
	if err := preload(s.db); !errors.Is(err, gormlock.ErrNoTransaction) {
		t.Errorf("outside of a transaction: %v", err)
	}
	err := s.db.Transaction(func(tx *gorm.DB) error {
		err := preload(tx)
		if !pgtest.Held(t, key) {
			t.Error("not held")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestOneConnection: in db.Connection gormlock sees no pool of its own, and the lock is there all the same.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	beside(t, modes[:3], func(t *testing.T, m mode) {
		s := m.lookout(t)
		for _, c := range cells() {
			t.Run(c.name, func(t *testing.T) {
				err := s.db.Connection(func(conn *gorm.DB) error {
					s.holds(t, c, func(run func(*gorm.DB) error) error { return conn.Transaction(run) })
					if c.reads {
						s.refuses(t, c, conn)
					} else {
						s.holds(t, c, func(run func(*gorm.DB) error) error { return run(conn) })
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	})
}
