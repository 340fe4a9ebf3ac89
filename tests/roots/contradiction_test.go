package roots_test

import (
	"context"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A part that names one root by its key and holds another is refused, where GORM would set the key back; a part that is moved by
// what it holds is moved.
func TestRoot_keyAndStruct(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		for name, c := range map[string]struct {
			write func(tx *gorm.DB, l *line, n *note, two *order) error
			moves bool
		}{
			"Update": {write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Model(l).Update("order_id", two.ID).Error
			}},
			"Update by field": {write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Model(l).Update("OrderID", two.ID).Error
			}},
			"UpdateColumn": {write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Model(l).UpdateColumn("order_id", two.ID).Error
			}},
			"Updates of a map": {write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Model(l).Updates(map[string]any{"order_id": two.ID, "qty": 3}).Error
			}},
			"Update to none": {write: func(tx *gorm.DB, _ *line, n *note, _ *order) error { return tx.Model(n).Update("order_id", nil).Error }},
			"Update, SkipHooks": {write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Session(&gorm.Session{SkipHooks: true}).Model(l).Update("order_id", two.ID).Error
			}},
			"Update of a slice": {write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Model([]*line{l}).Update("order_id", two.ID).Error
			}},
			"Save":         {write: func(tx *gorm.DB, l *line, _ *note, two *order) error { l.OrderID = two.ID; return tx.Save(l).Error }},
			"Save to none": {write: func(tx *gorm.DB, _ *line, n *note, _ *order) error { n.OrderID = nil; return tx.Save(n).Error }},
			"Save of a slice": {write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				l.OrderID = two.ID
				return tx.Save([]*line{l}).Error
			}},
			"Create": {write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Create(&line{OrderID: two.ID, Order: l.Order}).Error
			}},
			"another column": {write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				l.OrderID = two.ID
				return tx.Model(l).Update("qty", 3).Error
			}},
			"Updates of a struct": {write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Model(l).Updates(line{Order: two}).Error
			}},
			"Updates of a struct, key only": {write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Model(&line{ID: l.ID, Version: l.Version}).Updates(&line{Order: two}).Error
			}},
			"Updates of G": {write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				_, err := gorm.G[line](tx).Where("id = ?", l.ID).Updates(ctx, line{Qty: 3, Order: two})
				return err
			}},

			"moved by Save": {moves: true, write: func(tx *gorm.DB, l *line, _ *note, two *order) error { l.Order = two; return tx.Save(l).Error }},
			"moved by Update": {moves: true, write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				l.Order = two
				return tx.Model(l).Update("qty", 3).Error
			}},
			"moved by both": {moves: true, write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				l.Order, l.OrderID = two, two.ID
				return tx.Save(l).Error
			}},
			"moved by Save of a slice": {moves: true, write: func(tx *gorm.DB, l *line, _ *note, two *order) error { l.Order = two; return tx.Save([]*line{l}).Error }},
			"moved without the struct": {moves: true, write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				l.Order, l.OrderID = nil, two.ID
				return tx.Save(l).Error
			}},
			"moved with Omit": {moves: true, write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				l.OrderID = two.ID
				return tx.Omit("Order").Save(l).Error
			}},
			"moved by Association": {moves: true, write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Model(l).Association("Order").Append(two)
			}},
			"moved by Replace": {moves: true, write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Model(l).Association("Order").Replace(two)
			}},
			"moved by a map's struct": {moves: true, write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Model(l).Updates(map[string]any{"Order": two}).Error
			}},
			"moved by values": {moves: true, write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Model(&line{ID: l.ID, Version: l.Version}).Updates(line{OrderID: two.ID}).Error
			}},
			"moved by values with struct": {moves: true, write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Model(&line{ID: l.ID, Version: l.Version}).Updates(line{OrderID: two.ID, Order: two}).Error
			}},
			"appended, holding another": {moves: true, write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				return tx.Model(two).Association("Lines").Append(l)
			}},
			"appended": {moves: true, write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				l.Order = nil
				return tx.Model(two).Association("Lines").Append(l)
			}},
			"saved with its root": {moves: true, write: func(tx *gorm.DB, l *line, _ *note, two *order) error {
				l.Order = nil
				two.Lines = []line{*l}
				return tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(two).Error
			}},
		} {
			one, two := order{Title: "1"}, order{Title: "2"}
			stand.Must(t, db.Create(&one).Error)
			stand.Must(t, db.Create(&two).Error)
			l, n := line{Qty: 1, Order: &one}, note{Text: "x", Order: one}
			stand.Must(t, db.Create(&l).Error)
			n.Order = one
			stand.Must(t, db.Create(&n).Error)
			one.Version = n.Order.Version
			was := [2]int64{versionOf(t, db, one.ID), versionOf(t, db, two.ID)}
			err := db.Transaction(func(tx *gorm.DB) error { return c.write(tx, &l, &n, &two) })
			is := [2]int64{versionOf(t, db, one.ID), versionOf(t, db, two.ID)}
			stored := stand.Row[line](t, db, l.ID).OrderID
			switch {
			case c.moves && err != nil:
				t.Errorf("%s: %v", name, err)
			case c.moves && (stored != two.ID || is != [2]int64{was[0] + 1, was[1] + 1}):
				t.Errorf("%s: it belongs to %d, want %d, and the versions are %v, were %v", name, stored, two.ID, is, was)
			case !c.moves && (err == nil || !strings.Contains(err.Error(), "Order")):
				t.Errorf("%s: %v, and the line belongs to %d", name, err, stored)
			case !c.moves && is != was:
				t.Errorf("%s: refused, and the versions are %v, were %v", name, is, was)
			}
		}
	})
}

// A struct of the root that cannot be compared is an error, and one that can be is compared, wherever it stands.
func TestRoot_structOfIt(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		o := stand.Made(t, db, order{Title: "a"})
		l, n := line{OrderID: o.ID}, note{OrderID: &o.ID}
		stand.Must(t, db.Create(&l).Error)
		stand.Must(t, db.Omit("Order").Create(&n).Error)
		stale := o
		stand.Must(t, db.First(&o).Error)

		unread := order{ID: o.ID, Title: o.Title}
		for name, err := range map[string]error{
			"create": db.Create(&line{OrderID: o.ID, Order: &unread}).Error,
			"update": db.Model(&line{ID: l.ID, Version: l.Version, OrderID: o.ID, Order: &unread}).Update("qty", 2).Error,
			"delete": db.Delete(&line{ID: l.ID, Version: l.Version, OrderID: o.ID, Order: &unread}).Error,
		} {
			t.Log(name)
			stand.MustBeUnread(t, err)
		}
		stand.Must(t, db.Create(&line{OrderID: o.ID, Order: &order{ID: o.ID}}).Error)
		stand.Must(t, db.Create(&line{Order: &order{ID: o.ID + 50, Title: "new, with a key of its own"}}).Error)

		byValue := note{ID: n.ID, OrderID: n.OrderID, Order: stale}
		stand.MustStale(t, db.Delete(byValue).Error)
		stand.MustStale(t, db.Omit("Order").Model(byValue).Update("text", "x").Error)
		stand.MustStale(t, db.Model(&line{ID: l.ID, Version: l.Version}).Updates(line{Qty: 4, OrderID: o.ID, Order: &stale}).Error)
		stand.MustStale(t, db.Model(&line{ID: l.ID, Version: l.Version, OrderID: o.ID}).Updates(&line{Qty: 4, Order: &stale}).Error)
		stand.Must(t, db.First(&o, o.ID).Error)
		stand.Must(t, db.Model(&line{ID: l.ID, Version: l.Version}).Updates(line{Qty: 4, OrderID: o.ID, Order: &o}).Error)
		stand.Equal(t, "in memory", o.Version, versionOf(t, db, o.ID))
		byValue.Order = o
		stand.Must(t, db.Unscoped().Delete(byValue).Error)
	})
}

// A root that the transaction itself has deleted is gone.
func TestRoot_deletedBefore(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		for name, remove := range map[string]func(tx *gorm.DB, o *order) error{
			"by its struct": func(tx *gorm.DB, o *order) error { return tx.Delete(o).Error },
			"by its key":    func(tx *gorm.DB, o *order) error { return tx.Delete(&order{}, o.ID).Error },
			"in bulk":       func(tx *gorm.DB, o *order) error { return tx.Where("title = ?", o.Title).Delete(&order{}).Error },
			"after a part was written": func(tx *gorm.DB, o *order) error {
				stand.Must(t, tx.Create(&line{OrderID: o.ID}).Error)
				return tx.Delete(&order{}, o.ID).Error
			},
			"by an update": func(tx *gorm.DB, o *order) error {
				return tx.Model(&order{}).Where("id = ?", o.ID).Update("deleted_at", tx.NowFunc()).Error
			},
			"by an update of its struct": func(tx *gorm.DB, o *order) error { return tx.Model(o).Update("deleted_at", tx.NowFunc()).Error },
		} {
			o := stand.Made(t, db, order{Title: name})
			held := o
			err := db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, remove(tx, &o))
				return tx.Create(&line{OrderID: o.ID}).Error
			})
			t.Log(name)
			stand.MustStale(t, err)
			err = db.Transaction(func(tx *gorm.DB) error {
				o := held
				stand.Must(t, remove(tx, &o))
				return tx.Create(&line{OrderID: o.ID, Order: &o}).Error
			})
			stand.MustStale(t, err)
			stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
				o := held
				if name == "after a part was written" {
					return nil
				}
				stand.Must(t, remove(tx, &o))
				stand.Must(t, tx.Unscoped().Model(&order{}).Where("id = ?", o.ID).Update("deleted_at", nil).Error)
				return tx.Create(&line{OrderID: o.ID}).Error
			}))
		}
	})
}

// What has no version to move, or is asked for all the same, is not refused.
func TestRoot_notRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		o, two := order{}, order{}
		stand.Must(t, db.Create(&o).Error)
		stand.Must(t, db.Create(&two).Error)
		l, gone := line{OrderID: o.ID}, line{OrderID: o.ID}
		stand.Must(t, db.Create(&l).Error)
		stand.Must(t, db.Create(&gone).Error)

		_, err := gorm.G[line](db).Where("id = ?", l.ID).Set(clause.Association{Association: "Order", Type: clause.OpCreate, Values: []any{&order{Title: "new"}}}).Update(ctx)
		stand.Must(t, err)
		stored := stand.Row[line](t, db, l.ID)
		stand.Equal(t, "its title", stand.Row[order](t, db, stored.OrderID).Title, "new")

		for name, operation := range map[string]clause.Association{
			"create": {Association: "Lines", Type: clause.OpCreate, Set: []clause.Assignment{{Column: clause.Column{Name: "qty"}, Value: 8}}},
			"update": {Association: "Lines", Type: clause.OpUpdate, Set: []clause.Assignment{{Column: clause.Column{Name: "qty"}, Value: 9}}},
			"delete": {Association: "Lines", Type: clause.OpDelete},
		} {
			stand.Must(t, db.Create(&line{OrderID: o.ID}).Error)
			was := versionOf(t, db, o.ID)
			_, err := gorm.G[order](db).Where("id = ?", o.ID).Set(operation).Update(ctx)
			if err != nil || versionOf(t, db, o.ID) != was+1 {
				t.Errorf("%s: %v, the version is %d, was %d", name, err, versionOf(t, db, o.ID), was)
			}
		}
		stand.Must(t, db.Create(&line{OrderID: o.ID}).Error)

		stand.Must(t, db.Delete(&order{}, o.ID).Error)
		was := versionOf(t, db, o.ID)
		err = db.Create(&line{OrderID: o.ID}).Error
		stand.MustStale(t, err)
		stand.Equal(t, "it names the cure", strings.Contains(err.Error(), "use Unscoped"), true)
		stand.Must(t, db.Unscoped().Create(&line{OrderID: o.ID}).Error)
		stand.Equal(t, "version", versionOf(t, db, o.ID), was+1)
		was++
		stand.Must(t, db.Unscoped().Where("order_id = ?", o.ID).Delete(&line{}).Error)
		stand.Equal(t, "version", versionOf(t, db, o.ID), was+1)
	})
}

// The row tells which of the two was assigned only to a part that was read from it as it is.
func TestRoot_keyAndStructOfAPartThatWasNotReadAsItIs(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		one, two := stand.Made(t, db, order{}), stand.Made(t, db, order{})
		for name, c := range map[string]struct {
			ask   clause.Expression
			rival int64 // the order to which a rival moved the row
		}{
			"expected": {gormlock.ExpectVersion(2), one.ID},
			"blind":    {gormlock.IgnoreVersion(), two.ID},
		} {
			made := stand.Made(t, db, line{OrderID: one.ID})
			var l line
			stand.MustDo(t, db.Preload("Order").First(&l, made.ID))
			stand.MustDo(t, db.Model(&line{}).Where("id = ?", l.ID).Update("order_id", c.rival))
			l.OrderID = two.ID
			if err := db.Clauses(c.ask).Save(&l).Error; err == nil || !strings.Contains(err.Error(), "line.Order holds") {
				t.Errorf("%s: %v", name, err)
			}
			stand.Equal(t, name, stand.Row[line](t, db, l.ID).OrderID, c.rival)
		}
	})
}
