package versions_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// What is only built gives no struct a version: GORM writes the default of the column into it, and what a map assigns.
func TestDryRunGivesNoVersion(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&stand.Account{}, &stand.RailsTask{}, &stand.TimedTask{}}, dryRuns)
}

func dryRuns(t *testing.T, db *gorm.DB) {
	one, list := stand.Account{ID: 7, Note: "mine"}, []*stand.Account{{ID: 8}, {}}
	timed := stand.TimedTask{ID: 7}
	for what, build := range map[string]func(tx *gorm.DB) *gorm.DB{
		"Create":  func(tx *gorm.DB) *gorm.DB { return tx.Create(&one) },
		"upsert":  func(tx *gorm.DB) *gorm.DB { return tx.Clauses(stand.UpdateAll).Create(&one) },
		"slice":   func(tx *gorm.DB) *gorm.DB { return tx.Create(list) },
		"Save":    func(tx *gorm.DB) *gorm.DB { return tx.Save(list) },
		"batches": func(tx *gorm.DB) *gorm.DB { return tx.CreateInBatches(list, 1) },
		"time":    func(tx *gorm.DB) *gorm.DB { return tx.Create(&timed) },
	} {
		db.ToSQL(build)
		stand.Equal(t, what, one.Version, 0)
		stand.Equal(t, what, list[0].Version, 0)
		stand.Equal(t, what, list[1].Version, 0)
		stand.Equal(t, what, timed.Version.IsZero(), true)
	}
	stand.Made(t, db, stand.Account{ID: 7, Balance: 777})
	stand.MustBeUnread(t, db.Save(&one).Error)
	a := stand.Row[stand.Account](t, db, 7)
	db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Model(&a).Updates(map[string]any{"balance": 5, "version": 9}) })
	stand.Equal(t, "a map", a.Version, 1)
	db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Model(&a).Select("version").Updates(stand.Account{Version: 9}) })
	stand.Equal(t, "a struct", a.Version, 1)
}
