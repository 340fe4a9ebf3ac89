package gormlock_test

import (
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

type owner struct {
	ID   int64
	Name string
}

type owned struct {
	ID      int64
	Name    string
	OwnerID int64
	Owner   owner
	Parts   []ownedPart `gorm:"foreignKey:OwnedID"`
	Version int64       `gormlock:"version"`
}

type ownedPart struct {
	ID      int64
	OwnedID int64
}

// G2: without a transaction of GORM's too nothing is left of what a stale statement stored or deleted before it.
func TestG2_NothingRemainsOfAConflict(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&owner{}, &owned{}, &ownedPart{}}, pgtest.SkipDefaultTransaction())
	o := owned{Owner: owner{Name: "first"}, Parts: []ownedPart{{}}}
	must(t, db.Create(&o).Error)
	old := o
	must(t, db.Model(&o).Update("name", "x").Error)

	old.Owner, old.OwnerID = owner{Name: "second"}, 0
	mustStale(t, db.Save(&old).Error)
	mustStale(t, db.Model(&old).Updates(owned{Name: "y", Owner: owner{Name: "third"}}).Error)
	var n int64
	must(t, db.Model(&owner{}).Count(&n).Error)
	equal(t, "owners", n, 1)

	mustStale(t, db.Select("Parts").Delete(&owned{ID: o.ID, Version: 1}).Error)
	must(t, db.Model(&ownedPart{}).Count(&n).Error)
	equal(t, "parts", n, 1)
	must(t, db.Select("Parts").Delete(&o).Error)
	must(t, db.Model(&ownedPart{}).Count(&n).Error)
	equal(t, "parts", n, 0)
}

type fencedCell struct {
	Sheet int64 `gorm:"primaryKey;autoIncrement:false"`
	Line  int64 `gorm:"primaryKey;autoIncrement:false"`
	Text  string
	Fence int64 `gormlock:"fence,key=sheet"`
}

// A part of a key may be zero, and GORM leaves it out of the conditions: of a struct that holds a fence, and so was read or
// written, it belongs there as it does with a version.
func TestFencedRowWithAZeroInItsKey(t *testing.T) {
	t.Parallel()
	db := fenced(t, []any{&fencedCell{}})
	tx := with(db, issue(t, db, "sheet", 1))
	cells := []fencedCell{{Sheet: 1, Line: 0}, {Sheet: 1, Line: 1}}
	must(t, tx.Create(&cells).Error)
	must(t, tx.Model(&cells[0]).Update("text", "first").Error)
	must(t, unguarded(tx).Model(&cells[0]).Update("text", "one").Error)
	var found []fencedCell
	must(t, db.Order("line").Find(&found).Error)
	equal(t, "changed", found[0].Text, "one")
	equal(t, "the other row", found[1].Text, "")
}
