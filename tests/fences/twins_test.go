package fences_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	boat struct {
		ID     int64
		Cargos []cargo
	}
	cargo struct {
		ID, BoatID int64
		Text       string
		Fence      int64 `gorm:"not null;default:0" gormlock:"fence,key=boat"`
	}
)

// Of two structs of one row GORM saves one: if the model has a fence and no version, the other is not left out silently either.
func TestTwins_withAFenceAlone(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&boat{}, &cargo{}})
	db = stand.With(db, stand.Issue(t, db, "boat", 1))
	counts := func(what string, boats, cargos int64) {
		t.Helper()
		var b, c int64
		stand.Must(t, db.Model(&boat{}).Count(&b).Error)
		stand.Must(t, db.Model(&cargo{}).Count(&c).Error)
		stand.Equal(t, what+": boats", b, boats)
		stand.Equal(t, what+": cargos", c, cargos)
	}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "that differ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	twins := func() []cargo { return []cargo{{ID: 5, Text: "x"}, {ID: 5, Text: "y"}} }
	refused("new twins", db.Create(&boat{Cargos: twins()}).Error)
	counts("new twins", 0, 0)
	stand.Must(t, db.Create(&boat{ID: 1, Cargos: []cargo{{ID: 5, Text: "z"}}}).Error)
	whole := db.Session(&gorm.Session{FullSaveAssociations: true})
	refused("saved whole", whole.Save(&boat{ID: 1, Cargos: twins()}).Error)
	stand.Equal(t, "text", stand.Row[cargo](t, db, 5).Text, "z")
	stand.Must(t, db.Save(&boat{ID: 1, Cargos: twins()}).Error) // GORM writes the foreign key alone
	stand.Equal(t, "text", stand.Row[cargo](t, db, 5).Text, "z")
	counts("in the end", 1, 1)
}

// An INSERT that leaves out the key would be for another row.
func TestUpsert_withoutTheKeyOfAFencedRow(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&boat{}, &cargo{}})
	db = stand.With(db, stand.Issue(t, db, "boat", 1))
	stand.Must(t, db.Create(&boat{ID: 1}).Error)
	for i := range int64(3) { // which the sequence does not know
		stand.Must(t, db.Create(&cargo{ID: i + 1, BoatID: 1, Text: "old"}).Error)
	}
	cargos := []cargo{{ID: 3, BoatID: 1, Text: "mine"}}
	for what, tx := range map[string]*gorm.DB{"Select": db.Select("boat_id", "text"), "Omit": db.Omit("id")} {
		if err := tx.Save(&cargos).Error; err == nil || !strings.Contains(err.Error(), "leaves its key id out") {
			t.Errorf("%s: %v", what, err)
		}
	}
	var n int64
	stand.Must(t, db.Model(&cargo{}).Where("text = 'old'").Count(&n).Error)
	stand.Equal(t, "old rows", n, 3)
	stand.Must(t, db.Select("id", "boat_id", "text").Save(&cargos).Error)
	stand.Equal(t, "text", stand.Row[cargo](t, db, 3).Text, "mine")
}
