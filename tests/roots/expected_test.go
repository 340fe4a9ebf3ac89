package roots_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type bulkPart struct {
	ID      int64
	Text    string
	OrderID int64
	Order   *order `gormlock:"root"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// A statement about many parts that writes those at one version moves the roots of these, and of no others.
func TestRoot_ofPartsAtOtherVersions(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, append([]any{&bulkPart{}}, models...), func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(db *gorm.DB) *gorm.DB{
			"update": func(db *gorm.DB) *gorm.DB { return db.Model(&bulkPart{}).Where("id < 9").Update("text", "x") },
			"delete": func(db *gorm.DB) *gorm.DB { return db.Where("id < 9").Delete(&bulkPart{}) },
			"own Returning": func(db *gorm.DB) *gorm.DB {
				return db.Clauses(clause.Returning{Columns: []clause.Column{{Name: "id"}}}).Model(&bulkPart{}).Where("id < 9").Update("text", "x")
			},
		} {
			t.Run(name, func(t *testing.T) {
				if db.Name() == "mysql" && name == "own Returning" {
					t.Skip("an UPDATE has no RETURNING there")
				}
				stand.Must(t, db.Where("1=1").Delete(&bulkPart{}).Error)
				var ids [2]int64
				for i := range ids {
					o := stand.Made(t, db, order{})
					ids[i] = o.ID
					stand.Must(t, db.Create(&bulkPart{ID: int64(i) + 1, OrderID: o.ID, Version: int64(i) + 1}).Error)
				}
				done := write(db.Clauses(gormlock.ExpectVersion(1)))
				stand.Must(t, done.Error)
				stand.Equal(t, "rows", done.RowsAffected, 1)
				stand.Equal(t, "its root", versionOf(t, db, ids[0]), 3)
				stand.Equal(t, "the other root", versionOf(t, db, ids[1]), 2)
				stand.MustStale(t, write(db.Clauses(gormlock.ExpectVersion(7))).Error)
				stand.Equal(t, "no root", versionOf(t, db, ids[0]), 3)
			})
		}
	})
}
