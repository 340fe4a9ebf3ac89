package versions_test

import (
	"context"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A version does not move past what the field of the model holds: nobody could read the row any more. The greatest number of an unsigned field
// stands for a struct that was not read.
func TestNarrowVersion(t *testing.T) {
	t.Parallel()
	type short struct {
		ID      int64
		N       int
		Version uint8 `gorm:"not null;default:1" gormlock:"version"`
	}
	type wide struct {
		ID      int64
		N       int
		Version int32 `gorm:"type:bigint;not null;default:1" gormlock:"version"`
	}
	db := stand.Versioned(t, []any{&short{}, &wide{}})
	stand.Must(t, db.Exec("INSERT INTO shorts VALUES (1, 0, 254), (2, 0, 253)").Error)
	stand.Must(t, db.Exec("INSERT INTO wides VALUES (1, 0, 2147483647)").Error)
	for name, write := range map[string]func(db *gorm.DB) error{
		"bulk": func(db *gorm.DB) error { return db.Model(&short{}).Where("id = 1").Update("n", 5).Error },
		"IgnoreVersion": func(db *gorm.DB) error {
			return db.Clauses(gormlock.IgnoreVersion()).Save(&short{ID: 1, Version: 3}).Error
		},
		"update": func(db *gorm.DB) error { return db.Model(&short{ID: 1, Version: 254}).Update("n", 5).Error },
		"upsert": func(db *gorm.DB) error { return db.Clauses(stand.UpdateAll).Create(&short{ID: 1, N: 5}).Error },
		"touch":  func(db *gorm.DB) error { return gormlock.Touch(db, &short{ID: 1, Version: 254}) },
		"generics": func(db *gorm.DB) error {
			return stand.ErrorOf(gorm.G[short](db).Where("id = 1").Update(context.Background(), "n", 5))
		},
		"wide": func(db *gorm.DB) error { return db.Model(&wide{}).Where("id = 1").Update("n", 5).Error },
	} {
		if err := write(db); err == nil || !strings.Contains(err.Error(), "out of range") && !strings.Contains(err.Error(), "the largest its field can have") {
			t.Errorf("%s: %v", name, err)
		}
	}
	stand.Equal(t, "version", stand.Row[short](t, db, 1).Version, 254)
	stand.Equal(t, "version", stand.Row[wide](t, db, 1).Version, 2147483647)
	stand.Must(t, db.Model(&short{}).Where("id = 2").Update("n", 5).Error)
	stand.Equal(t, "version", stand.Row[short](t, db, 2).Version, 254)
}
