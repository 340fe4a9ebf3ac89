package versions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A form that changes nothing is compared, whatever finds its row: at the row's version it is no conflict.
func TestForm_changesNothing(t *testing.T) {
	t.Parallel()
	type account struct {
		ID      int64
		State   string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	type form struct {
		State   string
		Version int64
	}
	db := stand.Versioned(t, []any{&account{}})
	for name, of := range map[string]func(db *gorm.DB) *gorm.DB{
		"Where":         func(db *gorm.DB) *gorm.DB { return db.Model(&account{}).Where("id = 1") },
		"Where of many": func(db *gorm.DB) *gorm.DB { return db.Model(&account{}).Where("state = ''") },
		"key":           func(db *gorm.DB) *gorm.DB { return db.Model(&account{ID: 1}) },
		"struct":        func(db *gorm.DB) *gorm.DB { return db.Model(&account{ID: 1, Version: 7}) },
	} {
		for what, values := range map[string]func(version int64) any{
			"map":    func(version int64) any { return map[string]any{"version": version} },
			"form":   func(version int64) any { return form{Version: version} },
			"struct": func(version int64) any { return account{Version: version} },
		} {
			stand.Must(t, db.Exec("TRUNCATE accounts").Error)
			stand.Must(t, db.Exec("INSERT INTO accounts VALUES (1, '', 7), (2, '', 3)").Error)
			if err := of(db).Updates(values(7)).Error; err != nil {
				t.Errorf("%s, %s at the row's version: %v", name, what, err)
			}
			if err := of(db).Updates(values(6)).Error; !errors.Is(err, gormlock.ErrStale) {
				t.Errorf("%s, %s at another version: %v", name, what, err)
			}
			if err := of(db.Clauses(gormlock.IgnoreVersion())).Updates(values(6)).Error; err != nil {
				t.Errorf("%s, %s with IgnoreVersion: %v", name, what, err)
			}
			var rows []account
			stand.Must(t, db.Order("id").Find(&rows).Error)
			stand.Equal(t, "versions", [2]int64{rows[0].Version, rows[1].Version}, [2]int64{7, 3})
		}
	}
}

// A Save of a map whose conditions did not hold was an upsert without them.
func TestSaveOfAMap_underConditions(t *testing.T) {
	t.Parallel()
	type account struct {
		ID      int64
		State   string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	db, a := stand.Stored(t, account{State: "old"})
	for _, tx := range []*gorm.DB{db, db.Clauses(gormlock.IgnoreVersion())} {
		if err := tx.Model(&a).Where("state = ?", "other").Save(map[string]any{"id": a.ID, "state": "new"}).Error; err == nil {
			t.Error("it is no error")
		}
		stand.Equal(t, "state", stand.Row[account](t, db, a.ID).State, "old")
	}
	stand.Must(t, db.Model(&a).Save(map[string]any{"id": a.ID, "state": "new"}).Error)
	stand.Must(t, db.Model(&a).Where("state = ?", "new").Updates(map[string]any{"state": "newer"}).Error)
	stand.Equal(t, "state", stand.Row[account](t, db, a.ID).State, "newer")
}
