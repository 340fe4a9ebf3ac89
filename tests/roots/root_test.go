package roots_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// firm is the root of orders, and they are those of lines and of notes.
type firm struct {
	ID      int64
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type order struct {
	ID        int64
	Title     string
	FirmID    *int64
	Firm      *firm  `gormlock:"root"`
	Lines     []line `gorm:"foreignKey:OrderID"`
	DeletedAt gorm.DeletedAt
	Version   int64 `gorm:"not null;default:1" gormlock:"version"`
}

// line has a version itself, and note has none.
type line struct {
	ID      int64
	Qty     int64
	OrderID int64
	Order   *order `gormlock:"root"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

type note struct {
	ID        int64
	Text      string
	OrderID   *int64
	Order     order `gormlock:"root"`
	DeletedAt gorm.DeletedAt
}

var models = []any{&firm{}, &order{}, &line{}, &note{}}

func versionOf(t *testing.T, db *gorm.DB, id int64) int64 {
	t.Helper()
	return stand.Row[order](t, db, id).Version
}

// Each way to write a part moves the version of its root once, and that of the root's root.
func TestRoot_eachWrite(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		ctx := context.Background()
		for name, c := range map[string]struct {
			write func(tx *gorm.DB, l *line, n *note) error
			other bool // the second order moves too
			alone bool // the first one does not
		}{
			"Create": {write: func(tx *gorm.DB, l *line, _ *note) error { return tx.Create(&line{OrderID: l.OrderID}).Error }},
			"Create of a slice": {write: func(tx *gorm.DB, l *line, _ *note) error {
				return tx.Create([]*line{{OrderID: l.OrderID}, {OrderID: l.OrderID}}).Error
			}},
			"Create of a map": {write: func(tx *gorm.DB, l *line, _ *note) error {
				return tx.Model(&line{}).Create(map[string]any{"order_id": l.OrderID, "version": 1}).Error
			}},
			"CreateInBatches": {write: func(tx *gorm.DB, l *line, _ *note) error {
				return tx.CreateInBatches(&[]line{{OrderID: l.OrderID}, {OrderID: l.OrderID}}, 1).Error
			}},
			"Create of G": {write: func(tx *gorm.DB, l *line, _ *note) error {
				return gorm.G[line](tx).Create(ctx, &line{OrderID: l.OrderID})
			}},
			"Save":              {write: func(tx *gorm.DB, l *line, _ *note) error { l.Qty++; return tx.Save(l).Error }},
			"Save of a new one": {write: func(tx *gorm.DB, l *line, _ *note) error { return tx.Save(&line{OrderID: l.OrderID}).Error }},
			"Save of a slice":   {write: func(tx *gorm.DB, l *line, _ *note) error { return tx.Save([]*line{l, {OrderID: l.OrderID}}).Error }},
			"Save, unversioned": {write: func(tx *gorm.DB, _ *line, n *note) error {
				n.Text = "x"
				return tx.Omit(clause.Associations).Save(n).Error
			}},
			"upsert":              {write: func(tx *gorm.DB, l *line, _ *note) error { return tx.Clauses(stand.UpdateAll).Create(l).Error }},
			"Update":              {write: func(tx *gorm.DB, l *line, _ *note) error { return tx.Model(l).Update("qty", 5).Error }},
			"Update, unversioned": {write: func(tx *gorm.DB, _ *line, n *note) error { return tx.Model(&note{ID: n.ID}).Update("text", "x").Error }},
			"Updates":             {write: func(tx *gorm.DB, l *line, _ *note) error { return tx.Model(l).Updates(line{Qty: 5}).Error }},
			"UpdateColumn":        {write: func(tx *gorm.DB, l *line, _ *note) error { return tx.Model(l).UpdateColumn("qty", 5).Error }},
			"Update of a slice":   {write: func(tx *gorm.DB, l *line, _ *note) error { return tx.Model([]*line{l}).Update("qty", 5).Error }},
			"Updates of G": {write: func(tx *gorm.DB, l *line, _ *note) error {
				_, err := gorm.G[line](tx).Where("id = ?", l.ID).Updates(ctx, line{Qty: 7})
				return err
			}},
			"Set of G": {write: func(tx *gorm.DB, l *line, _ *note) error {
				_, err := gorm.G[line](tx).Where("id = ?", l.ID).Set(clause.Assignment{Column: clause.Column{Name: "qty"}, Value: 7}).Update(ctx)
				return err
			}},
			"bulk": {write: func(tx *gorm.DB, l *line, _ *note) error {
				return tx.Model(&line{}).Where("id = ?", l.ID).Update("qty", 9).Error
			}},
			"bulk by OR": {write: func(tx *gorm.DB, l *line, _ *note) error {
				return tx.Model(&line{}).Where("id = ?", l.ID).Or("qty < 0").Update("qty", 9).Error
			}},
			"bulk of no row": {alone: true, write: func(tx *gorm.DB, l *line, _ *note) error {
				return tx.Model(&line{}).Where("qty < 0").Update("qty", 9).Error
			}},
			"Delete":            {write: func(tx *gorm.DB, l *line, _ *note) error { return tx.Delete(l).Error }},
			"Delete by key":     {write: func(tx *gorm.DB, l *line, _ *note) error { return tx.Delete(&line{}, l.ID).Error }},
			"Delete of a slice": {write: func(tx *gorm.DB, l *line, _ *note) error { return tx.Delete([]*line{l}).Error }},
			"Delete of G": {write: func(tx *gorm.DB, l *line, _ *note) error {
				_, err := gorm.G[line](tx).Where("id = ?", l.ID).Delete(ctx)
				return err
			}},
			"soft delete": {write: func(tx *gorm.DB, _ *line, n *note) error { return tx.Delete(&note{ID: n.ID}).Error }},
			"Association": {write: func(tx *gorm.DB, l *line, _ *note) error {
				return tx.Model(&order{ID: l.OrderID, Version: 1}).Omit("Lines.*").Association("Lines").Unscoped().Delete(l)
			}},
			"moved":                    {other: true, write: func(tx *gorm.DB, l *line, _ *note) error { return tx.Model(l).Update("order_id", l.OrderID+1).Error }},
			"moved by Save":            {other: true, write: func(tx *gorm.DB, l *line, _ *note) error { l.OrderID++; return tx.Save(l).Error }},
			"moved by Save of a slice": {other: true, write: func(tx *gorm.DB, l *line, _ *note) error { l.OrderID++; return tx.Save([]*line{l}).Error }},
			"moved in bulk": {other: true, write: func(tx *gorm.DB, l *line, _ *note) error {
				return tx.Model(&line{}).Where("id = ?", l.ID).Update("order_id", l.OrderID+1).Error
			}},
			"several": {write: func(tx *gorm.DB, l *line, n *note) error {
				return tx.Transaction(func(tx *gorm.DB) error {
					return errors.Join(tx.Create(&line{OrderID: l.OrderID}).Error, tx.Model(l).Update("qty", 3).Error, tx.Delete(&note{ID: n.ID}).Error)
				})
			}},
		} {
			for _, in := range []string{"implicit", "explicit"} {
				f := stand.Made(t, db, firm{})
				orders := []order{{FirmID: &f.ID}, {FirmID: &f.ID}}
				stand.Must(t, db.Create(&orders).Error)
				l, n := line{Qty: 1, OrderID: orders[0].ID}, note{OrderID: &orders[0].ID}
				stand.Must(t, db.Omit("Order").Create(&l).Error)
				stand.Must(t, db.Omit("Order").Create(&n).Error)
				stand.Must(t, db.Exec("UPDATE orders SET version = 1").Error)
				stand.Must(t, db.Exec("UPDATE firms SET version = 1").Error)
				if err := stand.Begin[in](db, func(tx *gorm.DB) error { return c.write(tx, &l, &n) }); err != nil {
					t.Errorf("%s, %s: %v", name, in, err)
					continue
				}
				want := map[bool]int64{false: 1, true: 2}
				stand.Equal(t, name+", "+in+": first", versionOf(t, db, orders[0].ID), want[!c.alone])
				stand.Equal(t, name+", "+in+": second", versionOf(t, db, orders[1].ID), want[c.other])
				stand.Equal(t, name+", "+in+": firm", stand.Row[firm](t, db, f.ID).Version, want[!c.alone])
				// A rollback takes all back.
				if in == "explicit" {
					was := l
					_ = db.Transaction(func(tx *gorm.DB) error { _ = tx.Create(&line{OrderID: orders[1].ID}); return errors.New("back") })
					stand.Equal(t, name+": after a rollback", versionOf(t, db, orders[1].ID), want[c.other])
					stand.Equal(t, name+": struct", l, was)
				}
			}
		}
	})
}

// A root that the part holds is compared, and follows; a rollback takes that back.
func TestRoot_loaded(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		o := stand.Made(t, db, order{Title: "a"})
		stale := o
		l := stand.Made(t, db, line{OrderID: o.ID, Order: &o})
		stand.Equal(t, "the root in memory", o.Version, 2)
		o.Title = "b"
		stand.Must(t, db.Save(&o).Error)
		stand.Equal(t, "the root in memory", o.Version, 3)

		e := stand.MustBeStale(t, db.Create(&line{OrderID: o.ID, Order: &stale}).Error)
		stand.Equal(t, "table", e.Table, "orders")
		stand.Equal(t, "another run may cure it", gormlock.IsRetryable(e), true)
		stand.Equal(t, "stale", stale.Version, 1)
		l.Order = &stale
		stand.MustStale(t, db.Model(&l).Update("qty", 2).Error)
		stand.MustStale(t, db.Delete(&l).Error)
		l.Order = &o
		back := errors.New("back")
		if err := db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Model(&l).Update("qty", 2).Error)
			stand.Equal(t, "inside", o.Version, 4)
			second := o
			second.Version = 3 // as another struct of the root was read, before
			stand.Must(t, tx.Create(&line{OrderID: o.ID, Order: &second}).Error)
			stand.Equal(t, "the other struct", second.Version, 4)
			return back
		}); !errors.Is(err, back) {
			t.Error(err)
		}
		stand.Equal(t, "after the rollback", o.Version, 3)
		stand.Equal(t, "lines", l.Version, 1)
		o.Title = "c"
		stand.Must(t, db.Save(&o).Error)
	})
}

// The root's own write in the transaction may be its move, before or after that of a part.
func TestRoot_ownWrite(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		o := stand.Made(t, db, order{Lines: []line{{Qty: 1}, {Qty: 2}}})
		stand.Equal(t, "a new root", versionOf(t, db, o.ID), 1)
		stand.Must(t, db.First(&o, o.ID).Error)
		o.Title, o.Lines = "x", append(o.Lines, line{Qty: 3})
		stand.Must(t, db.Save(&o).Error)
		stand.Equal(t, "saved with lines", versionOf(t, db, o.ID), o.Version)
		stand.Equal(t, "in memory", o.Version, 2)
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Model(&o).Update("title", "y").Error, tx.Create(&line{OrderID: o.ID}).Error)
		}))
		stand.Equal(t, "the root first", versionOf(t, db, o.ID), 3)
		stand.Equal(t, "in memory", o.Version, 3)
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Create(&line{OrderID: o.ID}).Error, tx.Model(&o).Update("title", "z").Error)
		}))
		stand.Equal(t, "in memory", versionOf(t, db, o.ID), o.Version)
		stand.Must(t, db.Unscoped().Select("Lines").Delete(&o).Error)
		stand.MustStale(t, db.Create(&line{OrderID: o.ID}).Error)
	})
}

// A struct of the root that was read after the transaction had moved it is at its version.
func TestRoot_readAfterItsMove(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		o := stand.Made(t, db, order{})
		stale := o
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Create(&line{OrderID: o.ID}).Error)
			stand.Must(t, tx.First(&o, o.ID).Error)
			return tx.Create(&line{OrderID: o.ID, Order: &o}).Error
		}))
		stand.Equal(t, "version", versionOf(t, db, o.ID), 2)
		err := db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Create(&line{OrderID: o.ID}).Error)
			return tx.Create(&line{OrderID: o.ID, Order: &stale}).Error
		})
		stand.MustStale(t, err)
	})
}

// A root that is gone is stale, however it is named, and outside of a transaction nothing is written.
func TestRoot_refuses(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		e := stand.MustBeStale(t, db.Create(&line{OrderID: 4711}).Error)
		stand.Equal(t, "gone", e.Deleted, true)
		o := stand.Made(t, db, order{})
		l := stand.Made(t, db, line{OrderID: o.ID})
		none := db.Session(&gorm.Session{SkipDefaultTransaction: true})
		for name, err := range map[string]error{
			"create": none.Create(&line{OrderID: o.ID}).Error, "update": none.Model(&l).Update("qty", 2).Error, "delete": none.Delete(&l).Error,
		} {
			if !errors.Is(err, gormlock.ErrNoTransaction) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := db.Model(&l).Update("order_id", gorm.Expr("order_id + 1")).Error; err == nil {
			t.Error("a root that nobody knows")
		}
		stand.Equal(t, "version", versionOf(t, db, o.ID), 2)
		stand.Must(t, db.Model(&l).Update("qty", gorm.Expr("qty + 1")).Error)
		stand.MustStale(t, db.Save(&o).Error) // which was read before its line came
		if err := db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "qty"}}, UpdateAll: true}).Create(&line{OrderID: o.ID}).Error; err == nil {
			t.Error("an upsert on another column")
		}
		if err := db.Model(&line{}).Joins("Order").Where("lines.id = ?", l.ID).Update("qty", 1).Error; err == nil {
			t.Error("an update with joins")
		}
	})
}
