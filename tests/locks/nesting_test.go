package locks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// TestG16_Savepoint says whose locks an inner rollback frees.
func TestG16_Savepoint(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, s *lookout) {
		outer, inner, after := pgtest.Key(t), pgtest.Key(t), pgtest.Key(t)
		err := s.db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Scopes(gormlock.WithXactLock(outer)).Find(&[]widget{}).Error; err != nil {
				return err
			}
			err := tx.Transaction(func(tx *gorm.DB) error {
				both := tx.Scopes(gormlock.WithXactLock(outer), gormlock.WithXactLock(inner))
				if err := both.Create(&widget{Name: "undone"}).Error; err != nil {
					return err
				}
				if !pgtest.Held(t, outer) || !pgtest.Held(t, inner) {
					t.Error("not held inside")
				}
				return errInner
			})
			if !errors.Is(err, errInner) {
				t.Error(err)
			}
			if !pgtest.Held(t, outer) {
				t.Error("the inner rollback freed what was taken before it")
			}
			if pgtest.Held(t, inner) {
				t.Error("the inner rollback left what was first taken in it")
			}
			if err := tx.Transaction(func(tx *gorm.DB) error {
				return gormlock.AcquireXactLock(tx, []lockkey.Key{after})
			}); err != nil {
				return err
			}
			if !pgtest.Held(t, after) {
				t.Error("the end of an inner transaction that succeeds freed its lock")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		for _, key := range []lockkey.Key{outer, inner, after} {
			if pgtest.Held(t, key) {
				t.Errorf("%s is held after the transaction", key)
			}
		}
	})
}

// TestG16_LockOnADBThatTransactionsBeginFrom: its savepoints are no statements that could take a lock. Where one has
// failed the transaction is aborted, and only ROLLBACK TO, alone, brings it back.
func TestG16_LockOnADBThatTransactionsBeginFrom(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, s *lookout) {
		key := pgtest.Key(t)
		s.begin(key)
		err := s.db.Scopes(gormlock.WithXactLock(key)).Transaction(func(tx *gorm.DB) error {
			if pgtest.Held(t, key) {
				t.Error("held before the first statement: say so in the documentation")
			}
			inner := tx.Transaction(func(tx *gorm.DB) error {
				if err := tx.Create(&widget{Name: "undone"}).Error; err != nil {
					t.Error(err)
				}
				return tx.Exec("select 1/0").Error
			})
			if inner == nil {
				t.Error("the inner transaction did not fail")
			}
			if pgtest.Held(t, key) {
				t.Error("the inner rollback left the lock that was first taken in it")
			}
			return tx.Create(&widget{Name: "kept"}).Error
		})
		_, unheld := s.end()
		if err != nil {
			t.Error(err)
		}
		if len(unheld) > 0 {
			t.Errorf("the lock was not held when the server got %q", unheld)
		}
		var names []string
		if err := s.plain.Model(&widget{}).Pluck("name", &names).Error; err != nil || len(names) != 1 || names[0] != "kept" {
			t.Errorf("stored %q, %v", names, err)
		}
	})
}

// TestSavepoint_ofTheProgram: GORM's own savepoints take no lock, those of the program do. A lock that is asked for on the way back to one
// is taken behind it, where an aborted transaction has it too.
func TestSavepoint_ofTheProgram(t *testing.T) {
	t.Parallel()
	save := func(tx *gorm.DB) error { return tx.SavePoint("a").Error }
	back := func(tx *gorm.DB) error { return tx.RollbackTo("a").Error }
	text := func(tx *gorm.DB) error { return tx.Exec("ROLLBACK TO a").Error }
	eachMode(t, func(t *testing.T, s *lookout) {
		for name, call := range map[string]func(*gorm.DB) error{"SavePoint": save, "RollbackTo": back, "Exec": text} {
			taken, free := pgtest.Key(t), pgtest.Key(t)
			holder := s.db.Begin()
			if err := gormlock.AcquireXactLock(holder, []lockkey.Key{taken}); err != nil {
				t.Fatal(err)
			}
			for by, with := range map[string]func(tx *gorm.DB, key lockkey.Key) *gorm.DB{
				"Scopes": func(tx *gorm.DB, key lockkey.Key) *gorm.DB {
					return tx.Scopes(gormlock.WithXactLock(key, gormlock.Try()))
				},
				"Clauses": func(tx *gorm.DB, key lockkey.Key) *gorm.DB { return tx.Clauses(gormlock.XactLock(key, gormlock.Try())) },
			} {
				err := s.db.Transaction(func(tx *gorm.DB) error {
					if err := save(tx); err != nil {
						return err
					}
					if err := call(with(tx, taken)); !errors.Is(err, gormlock.ErrNotAcquired) {
						t.Errorf("%s, %s: a lock that another session holds: %v", name, by, err)
					}
					if name != "SavePoint" && tx.Exec("SELECT 1/0").Error == nil {
						t.Error("the control did not fail")
					}
					if err := call(with(tx, free)); err != nil || !pgtest.Held(t, free) {
						t.Errorf("%s, %s: %v, held: %v", name, by, err, pgtest.Held(t, free))
					}
					return tx.Create(&widget{Name: "kept"}).Error
				})
				if err != nil {
					t.Errorf("%s, %s: %v", name, by, err)
				}
			}
			if err := s.db.Transaction(func(tx *gorm.DB) error {
				locked := tx.Scopes(gormlock.WithXactLock(free))
				return locked.Exec("SAVEPOINT a; ROLLBACK TO a; SELECT 1").Error
			}); err == nil {
				t.Error("a text that goes back frees the lock")
			}
			holder.Rollback()
		}
	})
}
