package locks_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// GORM runs no callback for a call that has nothing to do, so nothing can take the lock there. What is empty and sends something does.
func TestXactLock_ofCallsThatSendNothing(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.LinedOrder{}, &stand.LinedLine{}})
	order := stand.Made(t, db, stand.LinedOrder{Title: "a"})
	for name, c := range map[string]struct {
		held bool
		call func(tx *gorm.DB) error
	}{
		"CreateInBatches": {false, func(tx *gorm.DB) error { return tx.CreateInBatches(&[]stand.LinedOrder{}, 10).Error }},
		"Append":          {false, func(tx *gorm.DB) error { return tx.Model(&order).Association("Lines").Append() }},
		"Updates":         {true, func(tx *gorm.DB) error { return tx.Model(&order).Updates(map[string]any{}).Error }},
	} {
		key := lockkey.Of("nothing", name)
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.Must(t, c.call(tx.Scopes(gormlock.WithXactLock(key))))
			rival := db.Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{key}, gormlock.Try()) })
			stand.Equal(t, name+": held", rival != nil, c.held)
		})
	}
}
