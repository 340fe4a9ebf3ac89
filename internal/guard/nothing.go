package guard

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// refuseNothing fails an upsert of all columns if Select and Omit leave none to update, and reports whether it did. An upsert with xmin may insert
// rows, because xmin is never among the columns.
func (d *draft) refuseNothing(stmt *gorm.Statement, found clause.OnConflict) bool {
	guards := d.version.is() && !d.version.IsSystem() || d.fence != nil
	if !guards || d.upsert == nil || !d.upsert.updates || !updatesNothing(found) {
		return false
	}
	fault.Add(stmt.DB, errUpdatesNothing(stmt))
	return true
}

// updatesNothing reports whether GORM has turned an upsert of all columns into DO NOTHING.
func updatesNothing(found clause.OnConflict) bool { return found.UpdateAll && found.DoNothing }

func errUpdatesNothing(stmt *gorm.Statement) error {
	return fmt.Errorf("gormlock: %s: Select and Omit leave nothing to update of rows that are there: name a column in Select, or use clause.OnConflict{DoNothing: true}",
		statement.TableName(stmt))
}
