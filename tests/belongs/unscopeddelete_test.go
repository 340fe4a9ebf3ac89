package belongs_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	buyer struct {
		ID      int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	depot struct {
		ID      int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	fencedSale struct {
		ID      int64
		BuyerID *int64
		Buyer   *buyer
		Fence   int64 `gorm:"not null;default:0" gormlock:"fence,key=sale"`
	}
	partSale struct {
		ID      int64
		BuyerID *int64
		Buyer   *buyer
		DepotID *int64
		Depot   *depot `gormlock:"root"`
	}
	strictSale struct {
		ID      int64
		BuyerID int64 `gorm:"not null"`
		Buyer   *buyer
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	sale struct {
		ID      int64
		BuyerID *int64
		Buyer   *buyer
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

func sales(t *testing.T) *gorm.DB {
	db := stand.Fenced(t, []any{})
	db.DisableForeignKeyConstraintWhenMigrating = true
	stand.Must(t, db.AutoMigrate(&buyer{}, &depot{}, &fencedSale{}, &partSale{}, &strictSale{}, &sale{}))
	stand.Must(t, db.Exec(`INSERT INTO buyers VALUES (1, 1), (2, 1); INSERT INTO fenced_sales VALUES (1, 1, 0); INSERT INTO part_sales VALUES (1, 1, 77);
		INSERT INTO strict_sales VALUES (1, 1, 1); INSERT INTO sales VALUES (1, 1, 1), (2, 2, 1)`).Error)
	return db
}

// The other row is not deleted if the owner was not written. GORM goes on to the delete, and returns the error of that.
func TestUnscopedDelete_ofARefusedOwner(t *testing.T) {
	t.Parallel()
	db := sales(t)
	old := stand.Issue(t, db, "sale", 1)
	_ = stand.Issue(t, db, "sale", 1)
	take := func(db *gorm.DB, owner any, b *buyer) error {
		return db.Model(owner).Association("Buyer").Unscoped().Delete(b)
	}
	var f fencedSale
	var p partSale
	var s strictSale
	for _, row := range []any{&f, &p, &s} {
		stand.Must(t, db.Preload("Buyer").First(row).Error)
	}
	isServers := func(err error) bool { return err != nil && strings.Contains(err.Error(), "23502") }
	for name, c := range map[string]struct {
		err error
		is  func(error) bool
	}{
		"superseded":     {take(stand.With(db, old), &f, f.Buyer), func(err error) bool { return errors.Is(err, gormlock.ErrFenced) }},
		"no token":       {take(db, &f, f.Buyer), func(err error) bool { return errors.Is(err, gormlock.ErrFenceMissing) }},
		"no root":        {take(db, &p, p.Buyer), func(err error) bool { return errors.Is(err, gormlock.ErrStale) }},
		"no transaction": {take(db.Session(&gorm.Session{SkipDefaultTransaction: true}), &p, p.Buyer), func(err error) bool { return errors.Is(err, gormlock.ErrNoTransaction) }},
		"the server":     {take(db, &s, s.Buyer), isServers},
		"in a transaction": {db.Transaction(func(tx *gorm.DB) error { return take(tx.Session(&gorm.Session{}), &f, f.Buyer) }),
			func(err error) bool { return errors.Is(err, gormlock.ErrFenceMissing) }},
	} {
		if !c.is(c.err) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	stand.Equal(t, "buyers", db.Find(&[]buyer{}).RowsAffected, 2)
	if f.BuyerID == nil || p.BuyerID == nil || s.BuyerID == 0 {
		t.Error("a struct has lost its buyer")
	}
	stand.Must(t, take(stand.With(db, stand.Issue(t, db, "sale", 1)), &f, f.Buyer))
	stand.Equal(t, "buyers", db.Find(&[]buyer{}).RowsAffected, 1)
}

// GORM deletes each row to which an owner belongs, although it was given another one.
func TestUnscopedDelete_ofAnotherRow(t *testing.T) {
	t.Parallel()
	db := sales(t)
	var all []sale
	stand.Must(t, db.Preload("Buyer").Order("id").Find(&all).Error)
	for name, err := range map[string]error{
		"another":     db.Model(&all[0]).Association("Buyer").Unscoped().Delete(&buyer{ID: 2}),
		"one of many": db.Transaction(func(tx *gorm.DB) error { return tx.Model(&all).Association("Buyer").Unscoped().Delete(&buyer{ID: 1}) }),
	} {
		if err == nil || !strings.Contains(err.Error(), "leave Unscoped out") {
			t.Errorf("%s: %v", name, err)
		}
	}
	stand.Equal(t, "buyers", db.Find(&[]buyer{}).RowsAffected, 2)
	stand.Equal(t, "sales", db.Find(&[]sale{}, "buyer_id IS NOT NULL").RowsAffected, 2)
	stand.Must(t, db.Model(&all).Association("Buyer").Unscoped().Delete(&buyer{ID: 1}, &buyer{ID: 2}))
	stand.Equal(t, "buyers", db.Find(&[]buyer{}).RowsAffected, 0)
}
