package versions_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A struct that counts as not read is no condition: no row has its version, so the statement would find none, without a word.
func TestUnread_asACondition(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	row := stand.Made(t, db, stand.Account{Balance: 1})
	unread := stand.Account{ID: row.ID, Version: stand.Unread}
	for how, with := range map[string]func(db *gorm.DB) *gorm.DB{
		"Where":       func(db *gorm.DB) *gorm.DB { return db.Where(&unread) },
		"by value":    func(db *gorm.DB) *gorm.DB { return db.Where(unread) },
		"Or":          func(db *gorm.DB) *gorm.DB { return db.Where("id = 0").Or(&unread) },
		"Not":         func(db *gorm.DB) *gorm.DB { return db.Not(&unread) },
		"a group":     func(db *gorm.DB) *gorm.DB { return db.Where(db.Session(&gorm.Session{NewDB: true}).Where(&unread)) },
		"a slice":     func(db *gorm.DB) *gorm.DB { return db.Where([]stand.Account{unread}) },
		"the version": func(db *gorm.DB) *gorm.DB { return db.Where(&stand.Account{Version: unread.Version}) },
		"a map":       func(db *gorm.DB) *gorm.DB { return db.Where(map[string]any{"id": row.ID, "version": unread.Version}) },
		"clause.Where": func(db *gorm.DB) *gorm.DB {
			return db.Clauses(clause.Where{Exprs: db.Statement.BuildCondition(&unread)})
		},
		"with a Select": func(db *gorm.DB) *gorm.DB { return db.Where(&unread, "ID", "Version") },
	} {
		for what, do := range map[string]func(db *gorm.DB) *gorm.DB{
			"Update":        func(db *gorm.DB) *gorm.DB { return db.Model(&stand.Account{}).Update("balance", 2) },
			"Updates":       func(db *gorm.DB) *gorm.DB { return db.Model(&stand.Account{}).Updates(stand.Account{Balance: 2}) },
			"Delete":        func(db *gorm.DB) *gorm.DB { return db.Delete(&stand.Account{}) },
			"First":         func(db *gorm.DB) *gorm.DB { return db.First(&stand.Account{}) },
			"Find":          func(db *gorm.DB) *gorm.DB { return db.Find(&[]stand.Account{}) },
			"Count":         func(db *gorm.DB) *gorm.DB { return db.Model(&stand.Account{}).Count(new(int64)) },
			"FirstOrCreate": func(db *gorm.DB) *gorm.DB { return db.FirstOrCreate(&stand.Account{}) },
		} {
			t.Run(how+", "+what, func(t *testing.T) {
				stand.MustBeUnread(t, do(with(db.Session(&gorm.Session{}))).Error)
				stand.Equal(t, "the row", stand.Row[stand.Account](t, db, row.ID), row)
			})
		}
	}
	stand.MustBeUnread(t, db.Delete(&stand.Account{}, unread).Error)
	stand.MustBeUnread(t, db.Take(&stand.Account{}, unread).Error)
	stand.MustBeUnread(t, db.Where(unread).Save(&row).Error)
	for how, with := range map[string]*gorm.DB{"its key": db.Where(&unread, "ID"), "a new struct": db.Where(&stand.Account{ID: row.ID}), "one that was read": db.Where(&row)} {
		done := with.First(&stand.Account{})
		stand.Must(t, done.Error)
		stand.Equal(t, how, done.RowsAffected, 1)
	}
}
