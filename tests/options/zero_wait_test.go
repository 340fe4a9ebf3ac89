package options_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A WaitOption that was never set is ErrOption wherever one can be given: it says neither how long to wait nor not to.
func TestZeroWaitOption(t *testing.T) {
	t.Parallel()
	db, account := stand.Stored(t, stand.Account{ID: 1})
	var wait gormlock.WaitOption
	key := lockkey.Of("k")
	of := func() *stand.Account { return &stand.Account{ID: account.ID} }
	for name, call := range map[string]func(tx *gorm.DB) error{
		"WithXactLock":    func(tx *gorm.DB) error { return tx.Scopes(gormlock.WithXactLock(key, wait)).First(of()).Error },
		"AcquireXactLock": func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{key}, wait) },
		"FenceFor":        func(tx *gorm.DB) error { _, err := gormlock.FenceFor(tx, key, wait); return err },
		"Locking": func(tx *gorm.DB) error {
			return gormlock.Transaction(tx, func(*gorm.DB) error { return nil }, gormlock.Locking(key, wait))
		},
		"WithRowLock": func(tx *gorm.DB) error {
			return tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, wait)).First(of()).Error
		},
		"RowLock": func(tx *gorm.DB) error {
			return tx.Clauses(gormlock.RowLock(gormlock.ForUpdate, wait)).First(of()).Error
		},
		"WithSkipLocked": func(tx *gorm.DB) error {
			return tx.Scopes(gormlock.WithSkipLocked(wait)).Find(&[]stand.Account{}).Error
		},
		"SkipLocked": func(tx *gorm.DB) error { return tx.Clauses(gormlock.SkipLocked(wait)).Find(&[]stand.Account{}).Error },
		"LockRow":    func(tx *gorm.DB) error { return gormlock.LockRow(tx, of(), wait) },
		"LockRows":   func(tx *gorm.DB) error { return gormlock.LockRows(tx, &[]*stand.Account{of()}, wait) },
	} {
		stand.InTx(t, db, func(tx *gorm.DB) {
			defer func() {
				if cause := recover(); cause != nil {
					t.Errorf("%s panics: %v", name, cause)
				}
			}()
			if err := call(tx); !errors.Is(err, gormlock.ErrOption) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
