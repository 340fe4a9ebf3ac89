package mariadb_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type lettered struct {
	ID      int64
	State   string `gorm:"size:20"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// The server finds a column in other letters too, and behind the name of its table. gormlock would not compare what is assigned so.
func TestOtherNamesOfColumns(t *testing.T) {
	t.Parallel()
	db := mariaserver.Open(t, []any{&lettered{}})
	for name, write := range map[string]func(of *gorm.DB) error{
		"letters": func(of *gorm.DB) error { return of.Updates(map[string]any{"state": "x", "VERSION": 1}).Error },
		"table":   func(of *gorm.DB) error { return of.Updates(map[string]any{"state": "x", "lettereds.version": 1}).Error },
		"quoted":  func(of *gorm.DB) error { return of.Updates(map[string]any{"state": "x", "`version`": 1}).Error },
		"alone":   func(of *gorm.DB) error { return of.Update("Lettereds.VERSION", 1).Error },
		"state":   func(of *gorm.DB) error { return of.Update("lettereds.STATE", "x").Error },
		"column":  func(of *gorm.DB) error { return of.UpdateColumn("VeRsIoN", 1).Error },
		"ignored": func(of *gorm.DB) error {
			return of.Clauses(gormlock.IgnoreVersion()).Updates(map[string]any{"state": "x", "`VERSION`": 1}).Error
		},
		"upsert": func(of *gorm.DB) error {
			set := clause.Assignments(map[string]any{"state": "x", "VERSION": 1})
			return of.Session(&gorm.Session{NewDB: true}).Clauses(clause.OnConflict{DoUpdates: set}).Create(&lettered{ID: 1, State: "x"}).Error
		},
	} {
		stand.Must(t, db.Exec("REPLACE INTO lettereds VALUES (1, '', 7)").Error)
		err := write(db.Model(&lettered{}).Where("id = 1"))
		var row lettered
		stand.Must(t, db.First(&row, 1).Error)
		if err == nil || !errors.Is(err, gormlock.ErrStale) && !strings.Contains(err.Error(), "which only the server takes for") || row.Version != 7 || row.State != "" {
			t.Errorf("%s: %v; the row is %+v", name, err, row)
		}
	}
}
