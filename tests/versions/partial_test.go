package versions_test

import (
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
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
	db := stand.Versioned(t, []any{&owner{}, &owned{}, &ownedPart{}}, pgtest.SkipDefaultTransaction())
	o := stand.Made(t, db, owned{Owner: owner{Name: "first"}, Parts: []ownedPart{{}}})
	old := o
	stand.Must(t, db.Model(&o).Update("name", "x").Error)

	old.Owner, old.OwnerID = owner{Name: "second"}, 0
	stand.MustStale(t, db.Save(&old).Error)
	stand.MustStale(t, db.Model(&old).Updates(owned{Name: "y"}).Error)
	var n int64
	stand.Must(t, db.Model(&owner{}).Count(&n).Error)
	stand.Equal(t, "owners", n, 1)

	stand.MustStale(t, db.Select("Parts").Delete(&owned{ID: o.ID, Version: 1}).Error)
	stand.Must(t, db.Model(&ownedPart{}).Count(&n).Error)
	stand.Equal(t, "parts", n, 1)
	stand.Must(t, db.Select("Parts").Delete(&o).Error)
	stand.Must(t, db.Model(&ownedPart{}).Count(&n).Error)
	stand.Equal(t, "parts", n, 0)
}

// GORM stores another owner and gives its key to the struct, but the caller leaves out that column. The struct keeps the owner of
// its row.
func TestBelongsTo_thatIsStoredWithoutItsKey(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&owner{}, &owned{}, &ownedPart{}})
	for name, write := range map[string]func(o *owned) error{
		"Updates": func(o *owned) error { return db.Model(o).Omit("OwnerID").Updates(map[string]any{"name": "x"}).Error },
		"Save":    func(o *owned) error { return db.Omit("OwnerID").Save(o).Error },
	} {
		o := stand.Made(t, db, owned{Owner: owner{Name: "first"}})
		first := o.OwnerID
		o.Owner = owner{Name: "second"}
		stand.Must(t, write(&o))
		stand.Equal(t, name+": stored", stand.Row[owned](t, db, o.ID).OwnerID, first)
		stand.Equal(t, name+": held", o.OwnerID, first)
	}
}
