package roots_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A struct of the root that another writer made stale is worth another attempt, whatever the transaction itself has done to the
// root since. One that the transaction made stale is not.
func TestRoot_whoMadeItStale(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, models, func(t *testing.T, db *gorm.DB) {
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
			o := order{}
			stand.Must(t, db.Create(&o).Error)
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
	stand.OnBoth(t, models, func(t *testing.T, db *gorm.DB) {
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
			l := pair{FromOrder: &o, ToOrderID: other.ID}
			stand.Must(t, db.Create(&l).Error)
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
