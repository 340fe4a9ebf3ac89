package rows_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// innerLocks is what a callback of the test's runs while a query of the program is about to lock rows.
type innerLocks func(tx *gorm.DB) error

type innerLocksKey struct{}

// A query under a row lock may run within another one: a callback of the application's asks it. Each leaves the lock_timeout as it was.
func TestRowLockTimeouts_nested(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, nestedTimeouts)
}

func nestedTimeouts(t *testing.T, opts ...pgtest.Option) {
	db := stand.Versioned(t, []any{&stand.Account{}}, opts...)
	free, held, key, heldKey := stand.Made(t, db, stand.Account{}), stand.Made(t, db, stand.Account{}), pgtest.Key(t, "free"), pgtest.Key(t, "held")
	rival := db.Begin()
	t.Cleanup(func() { rival.Rollback() })
	stand.Must(t, gormlock.LockRow(rival, &stand.Account{ID: held.ID}))
	stand.Must(t, gormlock.AcquireXactLock(rival, []lockkey.Key{heldKey}))
	stand.Must(t, db.Callback().Query().Before("gorm:query").Register("test:inner", func(d *gorm.DB) {
		if run, _ := d.Statement.Settings.LoadAndDelete(innerLocksKey{}); run != nil {
			_ = run.(innerLocks)(d.Session(&gorm.Session{NewDB: true})) //nolint:forcetypeassert // the only one
		}
	}))
	rowOf := func(id int64, wait gormlock.RowLockOption) func(tx *gorm.DB, inner innerLocks) error {
		return func(tx *gorm.DB, inner innerLocks) error {
			q := tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, wait))
			if inner != nil {
				q.Statement.Settings.Store(innerLocksKey{}, inner)
			}
			return q.First(&stand.Account{}, id).Error
		}
	}
	short := gormlock.Timeout(5 * time.Millisecond)
	kinds := map[string]func(tx *gorm.DB, inner innerLocks) error{
		"a row": rowOf(free.ID, gormlock.Timeout(3*time.Second)), "a held row": rowOf(held.ID, short), "a row tried": rowOf(held.ID, gormlock.Try()),
		"a savepoint, undone": func(tx *gorm.DB, inner innerLocks) error {
			return tx.Transaction(func(tx *gorm.DB) error {
				return errors.Join(rowOf(free.ID, gormlock.Timeout(4*time.Second))(tx, inner), errUndone)
			})
		},
		"a failure in a savepoint": func(tx *gorm.DB, inner innerLocks) error {
			return tx.Transaction(func(tx *gorm.DB) error {
				return rowOf(free.ID, gormlock.Timeout(5*time.Second))(tx.Where("1/(id-id) = 1"), inner)
			})
		},
		"an advisory lock": func(tx *gorm.DB, inner innerLocks) error {
			return errors.Join(gormlock.AcquireXactLock(tx, []lockkey.Key{key}, gormlock.Timeout(time.Second)), rowOf(free.ID, short)(tx.Clauses(gormlock.XactLock(key, short)), inner))
		},
		"a held advisory lock": func(tx *gorm.DB, inner innerLocks) error {
			return errors.Join(gormlock.AcquireXactLock(tx, []lockkey.Key{heldKey}, short), rowOf(free.ID, short)(tx.Clauses(gormlock.XactLock(heldKey, short)), inner))
		},
	}
	for one, outer := range kinds {
		for two, within := range kinds {
			for three, innermost := range kinds {
				tx := db.Begin()
				stand.MustDo(t, tx.Exec("SET LOCAL lock_timeout = '77ms'"))
				err := outer(tx, func(tx *gorm.DB) error {
					return within(tx, func(tx *gorm.DB) error { return innermost(tx, nil) })
				})
				var after string
				stand.Must(t, errors.Join(tx.Raw("SHOW lock_timeout").Scan(&after).Error, tx.Rollback().Error))
				stand.Equal(t, fmt.Sprintf("%s, in it %s, in it %s: %v: lock_timeout", one, two, three, err), after, "77ms")
			}
		}
	}
}

var errUndone = errors.New("undone")
