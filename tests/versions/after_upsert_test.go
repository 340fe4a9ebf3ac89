package versions_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// After an upsert the structs are their rows, whatever it updates, and can be written next; those it skipped are unread.
func TestUpsert_leavesRows(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	for name, conflict := range map[string]clause.OnConflict{
		"all columns":  {UpdateAll: true},
		"some columns": {Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"note"})},
		"expressions":  {Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.Assignments(map[string]any{"balance": gorm.Expr("accounts.balance + 1")})},
	} {
		t.Run(name, func(t *testing.T) {
			old := stand.Made(t, db, stand.Account{Balance: 7, Note: "old"})
			both := []stand.Account{{ID: old.ID, Balance: 1, Note: "new"}, {Balance: 2, Note: "inserted"}}
			stand.Must(t, db.Clauses(conflict).Create(&both).Error)
			for i := range both {
				stand.Equal(t, "the struct", both[i], stand.Row[stand.Account](t, db, both[i].ID))
				stand.Must(t, db.Model(&both[i]).Update("balance", 9).Error)
			}
		})
	}
	skipped := stand.Account{ID: 1, Balance: 1}
	stand.Must(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&skipped).Error)
	stand.MustBeUnread(t, db.Model(&skipped).Update("balance", 9).Error)
}
