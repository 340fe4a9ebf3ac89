package roots_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A struct of the root that another writer made stale is worth another attempt, whatever the transaction itself has done to the
// root since. One that the transaction made stale is not.
func TestRoot_whoMadeItStale(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		for name, c := range map[string]struct {
			rival, own bool
			before     func(tx *gorm.DB, o *order) error
		}{
			"a rival, then a part by key": {rival: true, before: func(tx *gorm.DB, o *order) error {
				return tx.Create(&line{OrderID: o.ID}).Error
			}},
			"a rival, then the row by another struct": {rival: true, before: func(tx *gorm.DB, o *order) error {
				other := order{}
				stand.Must(t, tx.First(&other, o.ID).Error)
				return tx.Model(&other).Update("title", "x").Error
			}},
			"a rival, then IgnoreVersion": {rival: true, before: func(tx *gorm.DB, o *order) error {
				return tx.Model(&order{ID: o.ID}).Clauses(gormlock.IgnoreVersion()).Update("title", "x").Error
			}},
			"itself, by another struct": {own: true, before: func(tx *gorm.DB, o *order) error {
				other := *o
				return tx.Model(&other).Update("title", "x").Error
			}},
		} {
			o := stand.Made(t, db, order{})
			if c.rival {
				stand.Must(t, db.Model(&order{}).Where("id = ?", o.ID).Update("title", "rival").Error)
			}
			err := db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, c.before(tx, &o))
				return tx.Create(&line{OrderID: o.ID, Order: &o}).Error
			})
			t.Log(name, err)
			stand.MustStale(t, err)
			stand.Equal(t, name+": retryable", gormlock.IsRetryable(err), !c.own)
			stand.Equal(t, name+": this transaction itself", strings.Contains(err.Error(), "this transaction itself"), c.own)
		}
	})
}

// Where GORM lets go of the struct of a root before its part is written, Touch compares it, and the root moves once.
func TestRoot_touchedBefore(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(tx *gorm.DB, l *pair) error{
			"Clear":   func(tx *gorm.DB, l *pair) error { return tx.Model(l).Association("FromOrder").Clear() },
			"Delete":  func(tx *gorm.DB, l *pair) error { return tx.Model(l).Association("FromOrder").Delete(l.FromOrder) },
			"Replace": func(tx *gorm.DB, l *pair) error { return tx.Model(l).Association("FromOrder").Replace(&order{}) },
			"Append":  func(tx *gorm.DB, l *pair) error { return tx.Model(l.FromOrder).Association("Lines").Append(&line{}) },
		} {
			stand.Must(t, db.AutoMigrate(&pair{}))
			o, other := order{}, order{}
			stand.Must(t, db.Create(&o).Error)
			stand.Must(t, db.Create(&other).Error)
			l := stand.Made(t, db, pair{FromOrder: &o, ToOrderID: other.ID})
			both := func(tx *gorm.DB) error {
				if err := gormlock.Touch(tx, l.FromOrder); err != nil {
					return err
				}
				return write(tx, &l)
			}
			id, was := o.ID, versionOf(t, db, o.ID) // GORM may empty the struct
			stand.Must(t, db.Model(&order{}).Where("id = ?", o.ID).Update("title", "a rival").Error)
			stand.MustStale(t, db.Transaction(both))
			stand.Must(t, db.First(&o, o.ID).Error)
			stand.Must(t, db.Transaction(both))
			stand.Equal(t, name, versionOf(t, db, id), was+2)
		}
	})
}

// small has a version that is soon at its largest.
type small struct {
	ID      int64
	Version int16 `gorm:"type:smallint;not null;default:1" gormlock:"version"`
}

type smallPart struct {
	ID      int64
	Qty     int64
	SmallID int64
	Small   *small `gormlock:"root"`
}

// A root whose version is the largest that its column holds is an error that says so, however the root is named.
func TestRoot_versionIsFull(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, db *gorm.DB) {
		s := stand.Made(t, db, small{})
		p := stand.Made(t, db, smallPart{SmallID: s.ID})
		stand.Must(t, db.Exec("UPDATE smalls SET version = 32767").Error)
		stand.Must(t, db.First(&s).Error)
		for name, err := range map[string]error{
			"create":         db.Create(&smallPart{SmallID: s.ID}).Error,
			"create, held":   db.Create(&smallPart{SmallID: s.ID, Small: &s}).Error,
			"update":         db.Model(&p).Update("qty", 3).Error,
			"bulk":           db.Model(&smallPart{}).Where("small_id = ?", s.ID).Update("qty", 3).Error,
			"delete":         db.Delete(&p).Error,
			"Touch":          gormlock.Touch(db, &s),
			"Touch, ignored": gormlock.Touch(db.Clauses(gormlock.IgnoreVersion()), &small{ID: s.ID}),
		} {
			if err == nil || !strings.Contains(err.Error(), "the largest its column holds") || !strings.Contains(err.Error(), "smalls id=") {
				t.Errorf("%s: %v", name, err)
			}
		}
		stand.Equal(t, "qty", stand.Row[smallPart](t, db, p.ID).Qty, 0)
	}
	test(t, stand.Versioned(t, []any{&small{}, &smallPart{}}))
	t.Run("mariadb", func(t *testing.T) {
		test(t, mariaserver.Open(t, []any{&small{}, &smallPart{}}, mariaserver.Param("sql_mode=%27STRICT_TRANS_TABLES%27")))
	})
}

// A part whose root is gone names both cures.
func TestRoot_orphans(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, models, func(t *testing.T, db *gorm.DB) {
		o := stand.Made(t, db, order{})
		n := note{OrderID: &o.ID}
		stand.Must(t, db.Omit("Order").Create(&n).Error)
		stand.Must(t, db.Migrator().DropConstraint(&note{}, "Order"))
		stand.Must(t, db.Exec("DELETE FROM orders WHERE id = ?", o.ID).Error)
		for name, err := range map[string]error{"delete": db.Delete(&n).Error, "update": db.Omit("Order").Model(&n).Update("text", "x").Error, "to none": db.Omit("Order").Model(&n).Update("order_id", nil).Error} {
			e := stand.MustBeStale(t, err)
			if !e.Deleted || !strings.Contains(err.Error(), "Unscoped") || !strings.Contains(err.Error(), "db.Exec") {
				t.Errorf("%s: %v", name, err)
			}
		}
		stand.Must(t, db.Exec("DELETE FROM notes WHERE id = ?", n.ID).Error)
	})
}
