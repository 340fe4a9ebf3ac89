package roots_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Append gives a part a root, a new one too, in the statement's own transaction and in the caller's. It compares the root that it is
// given, and memory is right afterwards, with a rollback too.
func TestRoot_append(t *testing.T) {
	t.Parallel()
	back := errors.New("back")
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		for _, in := range []string{"implicit", "explicit"} {
			begun := func(write func(tx *gorm.DB) error) error { return stand.Begin[in](db, write) }
			fresh := func() (order, line, note) {
				one, two := order{}, order{}
				stand.Must(t, db.Create(&one).Error)
				stand.Must(t, db.Create(&two).Error)
				l, n := line{OrderID: one.ID}, note{OrderID: &one.ID}
				stand.Must(t, db.Create(&l).Error)
				stand.Must(t, db.Omit("Order").Create(&n).Error)
				return two, l, n
			}
			// by pointer
			two, l, _ := fresh()
			added := &order{Title: "new"}
			stand.Must(t, begun(func(tx *gorm.DB) error { return tx.Model(&l).Association("Order").Append(added) }))
			stand.Equal(t, in+": it belongs to", stand.Row[line](t, db, l.ID).OrderID, added.ID)
			stand.Equal(t, in+": the new root", added.Version, versionOf(t, db, added.ID))
			stand.Must(t, db.Model(&l).Update("qty", 7).Error)
			stand.Must(t, begun(func(tx *gorm.DB) error { return tx.Model(&l).Association("Order").Replace(&two) }))
			stand.Equal(t, in+": the root in memory", two.Version, versionOf(t, db, two.ID))
			stand.Equal(t, in+": it has moved", two.Version, 2)
			stale, other, _ := fresh()
			stand.Must(t, db.Model(&order{}).Where("id = ?", stale.ID).Update("title", "a rival").Error)
			stand.MustStale(t, begun(func(tx *gorm.DB) error { return tx.Model(&other).Association("Order").Append(&stale) }))

			// by value: what GORM copies in the caller's transaction counts as not read
			two, _, n := fresh()
			newOne := order{Title: "new"}
			stand.Must(t, begun(func(tx *gorm.DB) error { return tx.Model(&n).Association("Order").Append(&newOne) }))
			stand.Equal(t, in+": by value, it belongs to", *stand.Row[note](t, db, n.ID).OrderID, newOne.ID)
			kept := func(version int64) int64 {
				if in == "implicit" {
					return version
				}
				return stand.Unread
			}
			stand.Equal(t, in+": by value, the new root", newOne.Version, kept(versionOf(t, db, newOne.ID)))
			stand.Must(t, begun(func(tx *gorm.DB) error { return tx.Model(&n).Association("Order").Replace(&two) }))
			stand.Equal(t, in+": by value, moved", versionOf(t, db, two.ID), 2)
			stand.Equal(t, in+": by value, the root in memory", two.Version, kept(2))
			n.Order = order{}
			stand.MustStale(t, begun(func(tx *gorm.DB) error {
				gone := stale
				return tx.Model(&n).Association("Order").Append(&gone)
			}))
		}

		// after a rollback nobody has a version that his row has not
		o := stand.Made(t, db, order{})
		l, n := line{OrderID: o.ID}, note{OrderID: &o.ID}
		stand.Must(t, db.Create(&l).Error)
		stand.Must(t, db.Omit("Order").Create(&n).Error)
		two, three, added := order{}, order{}, order{Title: "new"}
		stand.Must(t, db.Create(&two).Error)
		stand.Must(t, db.Create(&three).Error)
		if err := db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Model(&l).Association("Order").Append(&added))
			stand.Must(t, tx.Model(&l).Association("Order").Append(&two))
			stand.Must(t, tx.Model(&n).Association("Order").Append(&three))
			return back
		}); !errors.Is(err, back) {
			t.Error(err)
		}
		stand.Equal(t, "after a rollback: new", added.Version, 0)
		stand.Equal(t, "after a rollback: by pointer", two.Version, 1)
		if three.Version > 1 {
			t.Errorf("after a rollback: by value: %d", three.Version)
		}
		stand.Equal(t, "after a rollback: the part", l.Version, 1)
		stand.Equal(t, "after a rollback: its key", l.OrderID, o.ID)
		stand.Must(t, db.Model(&two).Update("title", "x").Error)
	})
}
