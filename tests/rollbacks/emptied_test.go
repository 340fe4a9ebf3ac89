package rollbacks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

type payer struct {
	ID      int64
	Name    string
	Version int64 `gormlock:"version"`
}

type bill struct {
	ID      int64
	Sum     int64
	Version int64 `gormlock:"version"`
	PayerID *int64
	Payer   *payer
}

// TestEmptiedByAssociation: Association(…).Delete of a belongs-to empties the struct that it is given. The next attempt has it
// again, and does not store an empty one.
func TestEmptiedByAssociation(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	must(t, db.AutoMigrate(&payer{}, &bill{}))
	p := payer{Name: "Ada"}
	must(t, db.Create(&p).Error)
	b := bill{ID: 1, PayerID: &p.ID, Payer: &p}
	must(t, db.Create(&b).Error)
	attempts := 0
	must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
		if attempts++; attempts == 2 && (b.Payer.ID != 1 || b.Payer.Name != "Ada") {
			t.Errorf("in the second attempt it is %+v", *b.Payer)
		}
		b.Sum = 90
		must(t, tx.Save(&b).Error)
		must(t, tx.Model(&b).Association("Payer").Delete(&p))
		if attempts == 1 {
			return gormlock.ErrStale
		}
		return nil
	}, gormlock.Attempts(2)))
	var all []payer
	must(t, db.Find(&all).Error)
	if len(all) != 1 || all[0].Name != "Ada" {
		t.Errorf("stored: %+v", all)
	}
}

// TestEmptiedByTheCaller: whoever empties a struct to use it for another row, and rolls back, overwrites nothing by its Save.
func TestEmptiedByTheCaller(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	must(t, db.AutoMigrate(&payer{}))
	p := payer{Name: "Ada"}
	must(t, db.Create(&p).Error)
	undo := errors.New("rolled back")
	if err := db.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Save(&p).Error)
		p = payer{}
		return undo
	}); !errors.Is(err, undo) {
		t.Fatal(err)
	}
	p.Name = "Grace"
	if err := db.Save(&p).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
		t.Errorf("Save: %v", err)
	}
	var all []payer
	must(t, db.Find(&all).Error)
	if len(all) != 1 || all[0].Name != "Ada" {
		t.Errorf("stored: %+v", all)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
