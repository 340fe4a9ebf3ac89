package rollbacks_test

import (
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Other servers are asked too which table a name is: a view has rows of a table, another table has its own.
func TestRollback_ofOtherNamesOnEachServer(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, []any{&gauge{}}, func(t *testing.T, db *gorm.DB) {
		stand.MustDo(t, db.Exec("CREATE VIEW gauges_seen AS SELECT * FROM gauges"))
		stand.Must(t, db.Table("gauges_old").AutoMigrate(&gauge{}))
		rows := []gauge{{ID: 1}, {ID: 2}, {ID: 3}}
		stand.MustDo(t, db.Create(&rows))
		old := []gauge{{ID: 1}, {ID: 2}, {ID: 3}}
		stand.MustDo(t, db.Table("gauges_old").Create(&old))
		views := db.Name() != "sqlite" // there nobody writes through them
		for _, other := range []string{"gauges", "gauges_seen"} {
			if other == "gauges_seen" && !views {
				continue
			}
			var list []gauge
			_ = db.Transaction(func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Order("id").Find(&list))
				stand.MustDo(t, tx.Model(&list[2]).Update("value", 7))
				slices.Reverse(list)
				stand.MustDo(t, tx.Table(other).Model(&list[0]).Update("place", "moved"))
				return errUndo
			})
			for _, g := range list {
				if g.Version != 1 && (other == "gauges" || g.Version != stand.Unread) {
					t.Errorf("%s: after the rollback: %+v", other, g)
				}
			}
		}
		stand.MustDo(t, db.Exec("UPDATE gauges_old SET version = 2 WHERE id = 3"))
		list, kept := []gauge{{}, {}, {}}, []gauge{{}, {}, {}}
		err := db.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Table("gauges_old").Order("id").Find(&kept))
			stand.MustDo(t, tx.Order("id").Find(&list))
			stand.MustDo(t, tx.Table("gauges_old").Model(&kept[0]).Update("value", 8))
			err := tx.Transaction(func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Model(&list[2]).Update("value", 7)) // it is at version 2 then, as that of the other table
				return errUndo
			})
			return ignore(err)
		})
		stand.Must(t, err)
		stand.Equal(t, "version in the other table", kept[2].Version, 2)
		stand.Must(t, db.Table("gauges_old").Save(&kept[2]).Error)
		stand.Equal(t, "version", list[2].Version, 1)
		stand.Equal(t, "the other one is known", errors.Is(db.Save(&list[2]).Error, gormlock.ErrVersionMissing), false)
	})
}
