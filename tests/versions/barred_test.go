package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type sealed struct {
	ID      int64
	Fixed   string `gorm:"<-:create"`
	Read    string `gorm:"->"`
	N       int
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// GORM leaves a column that its tag keeps out of updates out of them, even if the caller names it.
func TestBarredColumn(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&sealed{}}, func(t *testing.T, db *gorm.DB) {
		row := sealed{Fixed: "a", N: 1}
		stand.Must(t, db.Create(&row).Error)
		for what, err := range map[string]error{
			"Update":          db.Model(&row).Update("fixed", "b").Error,
			"Update, a field": db.Model(&row).Update("Fixed", "b").Error,
			"Update, ->":      db.Model(&row).Update("read", "b").Error,
			"UpdateColumn":    db.Model(&row).UpdateColumn("fixed", "b").Error,
			"a map":           db.Model(&row).Updates(map[string]any{"fixed": "b", "n": 2}).Error,
			"a map's pointer": db.Model(&row).Updates(&map[string]any{"fixed": "b", "n": 2}).Error,
			"Select":          db.Model(&row).Select("fixed", "n").Updates(sealed{Fixed: "b", N: 2}).Error,
			"Select and Save": db.Select("Fixed", "N").Save(&sealed{ID: row.ID, Fixed: "b", N: 2, Version: 1}).Error,
			"many rows":       db.Model(&sealed{}).Where("id > 0").Update("fixed", "b").Error,
		} {
			if err == nil || !strings.Contains(err.Error(), "its tag keeps it out of updates") {
				t.Errorf("%s: %v", what, err)
			}
		}
		stand.Equal(t, "the row", stand.Row[sealed](t, db, row.ID), row)

		row.Fixed = "b"
		stand.Must(t, db.Save(&row).Error)
		stand.Must(t, db.Model(&row).Updates(sealed{Fixed: "b", N: 3}).Error)
		stand.Must(t, db.Model(&row).Select("*").Updates(&sealed{ID: row.ID, Fixed: "b", N: 4, Version: row.Version}).Error)
		stand.Must(t, db.Model(&row).Omit("Fixed").Updates(map[string]any{"fixed": "b", "n": 5}).Error)
		stand.Must(t, db.Model(&row).Select("n").Updates(map[string]any{"fixed": "b", "n": 6}).Error)
		stand.Must(t, db.Model(&row).Updates(map[string]any{"n": 7, "version": row.Version}).Error)
		got := stand.Row[sealed](t, db, row.ID)
		stand.Equal(t, "fixed", got.Fixed, "a")
		stand.Equal(t, "n", got.N, 7)
	})
}
