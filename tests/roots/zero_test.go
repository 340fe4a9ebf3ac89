package roots_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// booth is a part of a shop whose key may be zeros, or NULL.
type booth struct {
	ID          int64
	Text        string
	ShopCountry *string `gorm:"size:40"`
	ShopNumber  *int64
	Shop        *shop `gorm:"foreignKey:ShopCountry,ShopNumber;references:Country,Number" gormlock:"root"`
}

// A foreign key that may be NULL names the row whose key is zero, if it is zero: that root moves, or it is an error that it is gone.
func TestRoot_keyOfZero(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, append([]any{&booth{}}, append(models, &shop{})...), func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Exec("INSERT INTO orders (id, title) VALUES (0, 'zero'), (1, 'one')").Error)
		stand.Must(t, db.Exec("INSERT INTO shops (country, number) VALUES ('', 0)").Error)
		is := func(what string, want int64) {
			t.Helper()
			var version int64
			stand.Must(t, db.Raw("SELECT version FROM orders WHERE id = 0").Scan(&version).Error)
			stand.Equal(t, what, version, want)
		}
		n := stand.Made(t, db, note{OrderID: pointerTo(0)})
		is("create", 2)
		stand.Must(t, db.Model(&note{ID: n.ID}).Update("text", "x").Error)
		is("update", 3)
		stand.Must(t, db.Model(&note{}).Where("order_id = 0").Update("text", "y").Error)
		is("in bulk", 4)
		other := stand.Made(t, db, note{OrderID: pointerTo(1)})
		stand.Must(t, db.Model(&note{ID: other.ID}).Update("order_id", 0).Error)
		is("moved to it", 5)
		stand.Must(t, db.Model(&note{}).Create(map[string]any{"order_id": 0}).Error)
		is("a map", 6)
		stand.Must(t, db.Model(&note{ID: other.ID}).Update("order_id", 1).Error)
		is("moved from it", 7)
		stand.Must(t, db.Delete(&note{}, n.ID).Error)
		is("delete", 8)

		country := ""
		b := stand.Made(t, db, booth{ShopCountry: &country, ShopNumber: pointerTo(0)})
		stand.Must(t, db.Model(&b).Update("text", "x").Error)
		var version int64
		stand.Must(t, db.Raw("SELECT version FROM shops").Scan(&version).Error)
		stand.Equal(t, "of two columns", version, 3)

		stand.Must(t, db.Exec("INSERT INTO notes (id, text, order_id) VALUES (0, 'zero', 1)").Error)
		done := db.Model(&note{}).Where("text = 'zero'").Update("text", "0")
		stand.Must(t, done.Error)
		stand.Equal(t, "an update of a part with such a key", done.RowsAffected, 1)
		done = db.Where("text = '0'").Delete(&note{})
		stand.Must(t, done.Error)
		stand.Equal(t, "its delete", done.RowsAffected, 1)
	})
	db := stand.Versioned(t, models, pgtest.Config(func(c *gorm.Config) { c.DisableForeignKeyConstraintWhenMigrating = true }))
	stand.MustStale(t, db.Create(&note{OrderID: pointerTo(0)}).Error)
	stand.Must(t, db.Create(&line{}).Error) // of no order
}
