package versions_test

import (
	"context"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// GORM builds neither LIMIT nor joins nor groups for an update or delete on PostgreSQL and SQLite. The rows that they would have
// left out are not written instead.
func TestDroppedClauses(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.Account{}, &shelvedPage{}}, droppedClauses)
}

func droppedClauses(t *testing.T, db *gorm.DB) {
	rows := []stand.Account{{Balance: 1}, {Balance: 2}, {Balance: 3}}
	stand.Must(t, db.Create(&rows).Error)
	stand.Must(t, db.Create(&[]shelvedPage{{Text: "a"}, {Text: "b"}}).Error)
	some := db.Where("accounts.id > 0").Session(&gorm.Session{})
	for what, restricted := range map[string]*gorm.DB{
		"Limit":       some.Order("id").Limit(1),
		"Limit of 0":  some.Limit(0),
		"Offset":      some.Offset(1),
		"Joins":       some.Joins("JOIN shelved_pages ON shelved_pages.id = accounts.id"),
		"Group":       some.Group("balance"),
		"Having":      some.Group("balance").Having("count(*) > 1"),
		"Distinct":    some.Distinct(),
		"all at once": some.Joins("JOIN shelved_pages ON shelved_pages.id = accounts.id").Order("id").Limit(1),
	} {
		restricted = restricted.Session(&gorm.Session{})
		for how, tx := range map[string]*gorm.DB{
			"Update":         restricted.Model(&stand.Account{}).Update("balance", 9),
			"Update, note":   restricted.Model(&stand.Account{}).Update("note", "x"),
			"Updates":        restricted.Model(&stand.Account{}).Updates(stand.Account{Balance: 9}),
			"UpdateColumn":   restricted.Model(&stand.Account{}).UpdateColumn("balance", 9),
			"Update, ignore": restricted.Clauses(gormlock.IgnoreVersion()).Model(&stand.Account{}).Update("balance", 9),
			"Delete":         restricted.Delete(&stand.Account{}),
		} {
			mustSayDropped(t, what+", "+how, tx.Error)
			stand.Equal(t, what+", "+how, tx.RowsAffected, 0)
		}
	}
	mustSayDropped(t, "soft delete", db.Where("id > 0").Limit(1).Delete(&shelvedPage{}).Error)
	_, err := gorm.G[stand.Account](db).Where("id > 0").Limit(1).Update(context.Background(), "balance", 9)
	mustSayDropped(t, "gorm.G", err)
	_, err = gorm.G[stand.Account](db).Where("id > 0").Limit(1).Delete(context.Background())
	mustSayDropped(t, "gorm.G", err)
	mustSayDropped(t, "a slice", db.Limit(2).Model(&rows).Update("balance", 9).Error)
	mustSayDropped(t, "a struct", db.Joins("JOIN shelved_pages ON shelved_pages.id = accounts.id").Model(&rows[2]).Update("balance", 9).Error)
	for i := range rows {
		stand.Equal(t, "after all of them", stand.Row[stand.Account](t, db, rows[i].ID), rows[i])
	}

	// The cure that the error names.
	first := db.Model(&stand.Account{}).Select("id").Order("id").Limit(1)
	stand.Equal(t, "by a sub-query", stand.MustDo(t, db.Model(&stand.Account{}).Where("id IN (?)", first).Update("balance", 9)).RowsAffected, 1)
}

func mustSayDropped(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), `Where("id IN (?)", …)`) {
		t.Errorf("%s: %v", what, err)
	}
}

// What loses nothing is no error: an order, a limit that the structs keep, an association that is joined to be loaded.
func TestDroppedClauses_thatLoseNothing(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.Account{}, &landlord{}, &rented{}}, func(t *testing.T, db *gorm.DB) {
		rows := []stand.Account{{Balance: 1}, {Balance: 2}}
		stand.Must(t, db.Create(&rows).Error)
		stand.Equal(t, "Order", stand.MustDo(t, db.Order("id").Model(&stand.Account{}).Where("id > 0").Update("balance", 4)).RowsAffected, 2)
		stand.Equal(t, "no limit", stand.MustDo(t, db.Limit(1).Limit(-1).Model(&stand.Account{}).Where("id > 0").Update("balance", 4)).RowsAffected, 2)

		var one stand.Account
		stand.Must(t, db.First(&one, rows[0].ID).Error)
		stand.Must(t, db.Limit(1).Model(&one).Update("balance", 6).Error)
		stand.Must(t, db.Limit(1).Save(&one).Error)
		stand.Must(t, db.Limit(1).Clauses(clause.Returning{}).Model(&one).Update("balance", 7).Error)
		stand.Must(t, db.Where("id = ?", one.ID).Assign(map[string]any{"balance": 8}).FirstOrCreate(&one).Error)
		stand.Must(t, db.Where("id = ?", one.ID).Order("id").Limit(1).Assign(map[string]any{"balance": 9}).FirstOrCreate(&one).Error)
		var page []stand.Account
		stand.Must(t, db.Order("id").Limit(1).Offset(1).Find(&page).Error)
		stand.Must(t, db.Limit(2).Offset(1).Delete(&page).Error)
		stand.Must(t, db.Limit(1).Delete(&one).Error)

		o := rented{Owner: &landlord{Name: "o"}}
		stand.Must(t, db.Create(&o).Error)
		stand.Must(t, db.Joins("Owner").Model(&o).Update("text", "x").Error)
		mustSayDropped(t, "an inner join", db.InnerJoins("Owner").Model(&o).Update("text", "y").Error)
		mustSayDropped(t, "an inner join", db.InnerJoins("Owner").Where("renteds.id > 0").Delete(&rented{}).Error)
	})
}

type landlord struct {
	ID   int64
	Name string
}

type rented struct {
	ID      int64
	Text    string
	OwnerID *int64
	Owner   *landlord
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}
