package rollbacks_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// gorm.G gives the caller a copy, which no rollback reaches. A server that does not tell which rows the transaction has written lets each copy
// count as not read, once it has written something.
func TestRollback_ofCopiesOnEachServer(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&stand.Account{}}, func(t *testing.T, db *gorm.DB) {
		stand.Made(t, db, stand.Account{ID: 1})
		var before, behind stand.Account
		var list []stand.Account
		stand.InTx(t, db, func(tx *gorm.DB) {
			var err error
			before, err = gorm.G[stand.Account](tx).First(t.Context())
			stand.Must(t, err)
			stand.MustDo(t, tx.Model(&stand.Account{}).Where("id = 1").Update("balance", 5))
			behind, err = gorm.G[stand.Account](tx).First(t.Context())
			stand.Must(t, err)
			list, err = gorm.G[stand.Account](tx).Find(t.Context())
			stand.Must(t, err)
		})
		stand.MustDo(t, db.Model(&stand.Account{}).Where("id = 1").Update("balance", 99)) // a rival
		for _, mine := range []*stand.Account{&behind, &list[0]} {
			stand.MustBeUnread(t, db.Save(mine).Error)
			stand.MustBeUnread(t, db.Clauses(stand.UpdateAll).Create(mine).Error)
			stand.MustBeUnread(t, db.Delete(mine).Error)
		}
		stand.MustStale(t, db.Save(&before).Error)
		stand.Equal(t, "the balance", stand.Row[stand.Account](t, db, 1).Balance, 99)
	})
}
