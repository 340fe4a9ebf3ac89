package versions_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestUpdateFromWithAnExpression: an UPDATE that reads another table with columns of the same names is written, and its
// struct is its row.
func TestUpdateFromWithAnExpression(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	stand.Must(t, db.Exec("CREATE TABLE raises (account_id bigint, balance bigint, version bigint); INSERT INTO raises VALUES (1, 5, 99)").Error)
	a := stand.Made(t, db, stand.Account{ID: 1, Balance: 10})
	from := clause.From{Tables: []clause.Table{{Name: "raises"}}}
	where := clause.Expr{SQL: "raises.account_id = accounts.id"}
	update := db.Clauses(from).Model(&a).Where(where).Update("balance", gorm.Expr("accounts.balance + raises.balance"))
	stand.Must(t, update.Error)
	stand.Equal(t, "rows", update.RowsAffected, 1)
	stand.Equal(t, "the row", stand.Row[stand.Account](t, db, 1).Balance, 15)
	stand.Equal(t, "its version", stand.Row[stand.Account](t, db, 1).Version, 2)
	old := a
	a.Balance++
	if err := db.Save(&a).Error; err == nil {
		stand.MustStale(t, db.Save(&old).Error)
	}
	stand.Equal(t, "the struct", stand.Row[stand.Account](t, db, 1), a)
}
