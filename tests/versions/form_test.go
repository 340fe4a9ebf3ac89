package versions_test

import (
	"context"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type flat struct {
	ID         int64
	Title      string
	LandlordID *int64
	Landlord   *landlord
	Rooms      []flatRoom
	Key        *flatKey
	Version    int64 `gorm:"not null;default:1" gormlock:"version"`
}

type flatRoom struct {
	ID, FlatID int64
	Name       string
}

type flatKey struct {
	ID, FlatID int64
	Number     int
}

// flatForm is what a request may be read into.
type flatForm struct {
	Title      string
	LandlordID *int64
	Landlord   *landlord
}

// GORM leaves out the associations in the values of an update: what was asked for would not happen, and nothing would say so.
func TestAssociationsInValues(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&landlord{}, &flat{}, &flatRoom{}, &flatKey{}}, associationsInValues)
}

func associationsInValues(t *testing.T, db *gorm.DB) {
	first, second := landlord{Name: "a"}, landlord{Name: "b"}
	stand.Must(t, db.Create(&first).Error)
	stand.Must(t, db.Create(&second).Error)
	f := flat{Title: "t", Landlord: &first, Rooms: []flatRoom{{Name: "r"}}}
	stand.Must(t, db.Create(&f).Error)
	var loaded flat
	stand.Must(t, db.Preload("Landlord").Preload("Rooms").First(&loaded, f.ID).Error)

	for what, err := range map[string]error{
		"another":            db.Model(&loaded).Updates(flat{Title: "x", Landlord: &second}).Error,
		"a pointer":          db.Model(&loaded).Updates(&flat{Title: "x", Landlord: &second}).Error,
		"a new one":          db.Model(&loaded).Updates(flat{Title: "x", Landlord: &landlord{Name: "c"}}).Error,
		"selected":           db.Model(&loaded).Select("Landlord").Updates(flat{Landlord: &second}).Error,
		"selected, its key":  db.Model(&loaded).Select("Title", "Landlord").Updates(flat{Title: "x", LandlordID: &second.ID, Landlord: &second}).Error,
		"its key left out":   db.Model(&loaded).Omit("LandlordID").Updates(flat{Title: "x", LandlordID: &second.ID, Landlord: &second}).Error,
		"contradicts":        db.Model(&loaded).Updates(flat{Title: "x", LandlordID: &first.ID, Landlord: &second}).Error,
		"UpdateColumns":      db.Model(&loaded).UpdateColumns(flat{Title: "x", Landlord: &second}).Error,
		"a form":             db.Model(&loaded).Updates(flatForm{Title: "x", Landlord: &second}).Error,
		"many rows":          db.Model(&flat{}).Where("id > 0").Updates(flat{Title: "x", Landlord: &first}).Error,
		"a slice":            db.Model(&[]flat{loaded}).Updates(flat{Title: "x", Landlord: &second}).Error,
		"gorm.G":             stand.ErrorOf(gorm.G[flat](db).Where("id = ?", f.ID).Updates(context.Background(), flat{Title: "x", Landlord: &second})),
		"children":           db.Model(&loaded).Updates(flat{Title: "x", Rooms: []flatRoom{{Name: "new"}}}).Error,
		"one child more":     db.Model(&loaded).Updates(flat{Title: "x", Rooms: append(loaded.Rooms[:1:1], flatRoom{Name: "new"})}).Error,
		"a changed child":    db.Model(&loaded).Updates(flat{Title: "x", Rooms: []flatRoom{{ID: loaded.Rooms[0].ID, FlatID: f.ID, Name: "new"}}}).Error,
		"one child":          db.Model(&loaded).Updates(flat{Title: "x", Key: &flatKey{Number: 1}}).Error,
		"a pointer to a map": db.Model(&loaded).Updates(&map[string]any{"title": "x", "Landlord": &second}).Error,
	} {
		if err == nil || !strings.Contains(err.Error(), "GORM leaves out an association") {
			t.Errorf("%s: %v", what, err)
		}
	}
	row := stand.Row[flat](t, db, f.ID)
	stand.Equal(t, "title", row.Title, "t")
	stand.Equal(t, "version", row.Version, loaded.Version)

	// The cures that the error names.
	stand.Must(t, db.Model(&loaded).Updates(map[string]any{"title": "m", "Landlord": &second}).Error)
	stand.Equal(t, "by a map", *stand.Row[flat](t, db, f.ID).LandlordID, second.ID)
	stand.Must(t, db.Model(&loaded).Updates(flat{LandlordID: &first.ID}).Error)
	stand.Equal(t, "by its key", *stand.Row[flat](t, db, f.ID).LandlordID, first.ID)
	loaded.Landlord = &second
	stand.Must(t, db.Save(&loaded).Error)
	stand.Equal(t, "by Save", *stand.Row[flat](t, db, f.ID).LandlordID, second.ID)
}

// A form may carry what was read along with its row, and what the caller leaves out himself.
func TestAssociationsInValues_thatSayNothingNew(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&landlord{}, &flat{}, &flatRoom{}, &flatKey{}}, associationsThatSayNothingNew)
}

func associationsThatSayNothingNew(t *testing.T, db *gorm.DB) {
	second := landlord{Name: "b"}
	stand.Must(t, db.Create(&second).Error)
	f := flat{Title: "t", Landlord: &landlord{Name: "a"}, Rooms: []flatRoom{{Name: "r"}}, Key: &flatKey{Number: 1}}
	stand.Must(t, db.Create(&f).Error)
	load := func() (row flat) {
		stand.Must(t, db.Preload(clause.Associations).First(&row, f.ID).Error)
		return row
	}
	row := load()
	form := row
	form.Title = "copy"
	stand.Must(t, db.Model(&row).Updates(form).Error)
	row, form = load(), load()
	form.Title = "read again"
	stand.Must(t, db.Model(&row).Updates(form).Error)
	stand.Must(t, db.Model(&row).Updates(flat{Title: "its landlord", Landlord: row.Landlord}).Error)
	stand.Must(t, db.Model(&row).Updates(flat{Title: "no rooms", Rooms: []flatRoom{}}).Error)
	stand.Must(t, db.Model(&row).Omit("Landlord").Updates(flat{Title: "omitted", Landlord: &second}).Error)
	stand.Must(t, db.Model(&row).Omit(clause.Associations).Updates(flat{Title: "omitted", Landlord: &second, Rooms: []flatRoom{{Name: "r"}}}).Error)
	stand.Must(t, db.Model(&row).Select("title").Updates(flat{Title: "selected", Landlord: &second}).Error)
	stand.Equal(t, "the landlord", *stand.Row[flat](t, db, f.ID).LandlordID, *f.LandlordID)
	stand.Must(t, db.Model(&row).Updates(flatForm{Title: "both", LandlordID: &second.ID, Landlord: &second}).Error)
	stand.Equal(t, "the landlord", *stand.Row[flat](t, db, f.ID).LandlordID, second.ID)
	stand.Equal(t, "the title", stand.Row[flat](t, db, f.ID).Title, "both")
}
