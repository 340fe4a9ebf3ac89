package guard

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/statement"
)

// leavesOwner reports whether conditions of the caller have left an owner out that Association(…) was to write. GORM has changed what the struct holds
// before, so a later save would store it after all.
func (w *Write) leavesOwner(db *gorm.DB) bool {
	return w.where.filtered && w.op == OpUpdate && int(db.RowsAffected) < w.distinct() && (statement.InAssociation() || statement.InClear(db.Statement))
}

// whyLeft is the error of such an owner.
func (w *Write) whyLeft(db *gorm.DB) error {
	if !w.batch {
		if err := w.whyNone(db); err != nil {
			return err
		}
	}
	return fmt.Errorf("gormlock: %s: Association(…) was not executed, the conditions before it leave an owner out, and GORM has changed its struct all the same: "+
		"leave the conditions out, or read the struct again with them first", statement.TableName(db.Statement))
}
