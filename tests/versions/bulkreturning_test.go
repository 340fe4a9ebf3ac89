package versions_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A bulk statement that returns a part of its rows gives structs a version only together with all columns: otherwise the next
// Save would write what was not returned as empty.
func TestBulkReturnsWholeRows(t *testing.T) {
	t.Parallel()
	cols := clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "version"}}}
	for name, model := range map[string]any{"hard": &stand.Account{}, "soft": &softAccount{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{model})
			if name == "hard" {
				bulkReturns(t, db, cols, func(a *stand.Account) *int64 { return &a.Balance }, func() stand.Account { return stand.Account{Balance: 1, Note: "n"} })
			} else {
				bulkReturns(t, db, cols, func(a *softAccount) *int64 { return &a.Balance }, func() softAccount { return softAccount{Balance: 1, Note: "n"} })
			}
		})
	}
}

func bulkReturns[T comparable](t *testing.T, db *gorm.DB, cols clause.Returning, balance func(*T) *int64, row func() T) {
	stand.Made(t, db, row())
	stand.Made(t, db, row())
	var a T
	stand.Must(t, db.Model(&a).Clauses(cols).Where("id = 1").Update("balance", 5).Error)
	stand.Equal(t, "struct", a, stand.Row[T](t, db, 1))
	*balance(&a) = 6
	stand.Must(t, db.Save(&a).Error)
	stand.Equal(t, "saved", a, stand.Row[T](t, db, 1))
	var list []T
	stand.Must(t, db.Model(&list).Clauses(cols).Where("id > 0").Update("balance", gorm.Expr("balance + 1")).Error)
	stand.Equal(t, "list", len(list), 2)
	for i := range list {
		var now T
		stand.Must(t, db.First(&now, "balance = ?", *balance(&list[i])).Error)
		stand.Equal(t, "element", list[i], now)
	}
	var other T
	stand.Must(t, db.Model(&other).Clauses(clause.Returning{Columns: []clause.Column{{Name: "version"}, {Name: "id"}, {Name: "upper(note) AS x", Raw: true}}}).Where("id = 2").
		Updates(map[string]any{"balance": 9}).Error)
	stand.Equal(t, "with an expression", other, stand.Row[T](t, db, 2))
	var gone []T
	stand.Must(t, db.Clauses(cols).Where("id = 2").Delete(&gone).Error)
	stand.Equal(t, "deleted", len(gone), 1)
}
