package merges_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A rollback of a merge gives no other struct of the row the version that the merged one had.
func TestSaveMerged_rollbackLeavesOtherStructs(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.Account{}}, func(t *testing.T, db *gorm.DB) {
		for _, edit := range []int64{0, 7} {
			made := stand.Made(t, db, stand.Account{Balance: 1, Note: "a"})
			mine, base := stand.Row[stand.Account](t, db, made.ID), stand.Row[stand.Account](t, db, made.ID)
			mine.Balance += edit
			other := stand.Account{ID: made.ID, Note: "imported"}
			_ = db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"note"})}).Create(&other).Error)
				stand.Must(t, gormlock.SaveMerged(tx, &mine, &base))
				return errMergeUndone
			})
			stand.MustBeUnread(t, db.Save(&other).Error)
			stand.Must(t, gormlock.SaveMerged(db, &mine, &base))

			// two stale structs, merged one after the other
			old := stand.Row[stand.Account](t, db, made.ID)
			stand.Must(t, db.Model(&stand.Account{}).Where("id = ?", made.ID).Update("note", "b").Error)
			mid := stand.Row[stand.Account](t, db, made.ID)
			stand.Must(t, db.Model(&stand.Account{}).Where("id = ?", made.ID).Update("balance", 100).Error)
			wasOld, wasMid := old, mid
			baseOld, baseMid := old, mid
			_ = db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, gormlock.SaveMerged(tx, &mid, &baseMid))
				stand.Must(t, gormlock.SaveMerged(tx, &old, &baseOld))
				stand.Equal(t, "both are as the row", old, mid)
				return errMergeUndone
			})
			stand.Equal(t, "the older struct", old, wasOld)
			stand.Equal(t, "the newer struct", mid, wasMid)
		}
	})
}
