package belongs_test

import (
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	shelf struct {
		ID    int64
		Name  string
		Books []book
		Cards []card
		Dates []date
	}
	book struct {
		ID      int64
		ShelfID *int64
		Name    string
		Version int16 `gorm:"not null;default:1;check:version > 0" gormlock:"version"`
	}
	card struct {
		ID      int64
		ShelfID *int64
		Name    string
		Version uint8 `gorm:"type:smallint;not null;default:1;check:version > 0 and version < 256" gormlock:"version"`
	}
	date struct {
		ID        int64
		ShelfID   *int64
		Name      string
		CreatedAt time.Time
		UpdatedAt time.Time `gorm:"check:updated_at >= created_at" gormlock:"version"`
	}
)

// What a child proposes in place of its version keeps to a CHECK on it, at each version.
func TestChildren_whoseVersionsAreChecked(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&shelf{}, &book{}, &card{}, &date{}})
	s := shelf{Books: []book{{Name: "a"}}, Cards: []card{{Name: "a"}}}
	stand.Must(t, db.Create(&s).Error)
	for _, n := range []int{1, 63, 64, 128, 191, 192, 253, 8191, 8192, 16383, 16384, 16385, 24575, 24576, 32764} {
		stand.Must(t, db.Exec("UPDATE books SET version = ?, name = 'a'", n).Error)
		stand.Must(t, db.Exec("UPDATE cards SET version = ?, name = 'a'", min(n, 253)).Error)
		stand.Must(t, db.Preload(clause.Associations).First(&s).Error)
		stand.Must(t, db.Save(&s).Error) // which only links
		s.Books[0].Name, s.Cards[0].Name = "b", "b"
		if err := db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&s).Error; err != nil {
			t.Errorf("at %d: %v", n, err)
		}
		stand.Equal(t, "book", stand.Row[book](t, db, 1).Name, "b")
		stand.Equal(t, "card", stand.Row[card](t, db, 1).Name, "b")
		stand.Must(t, db.Exec("UPDATE books SET shelf_id = NULL").Error)
		stand.Must(t, db.Find(&s.Books).Error)
		stand.Must(t, db.Model(&shelf{ID: s.ID}).Association("Books").Append(s.Books))
	}
}

// A child that a rival has moved is there, also at the version that is proposed for it.
func TestChildren_atAnyVersionOfARival(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&shelf{}, &book{}, &card{}, &date{}}, func(t *testing.T, db *gorm.DB) {
		s := shelf{Books: []book{{Name: "a"}}, Cards: []card{{Name: "a"}}}
		stand.Must(t, db.Create(&s).Error)
		for _, far := range []int{0, 8192, 16384, 24576} {
			for n := range 253 {
				stand.Must(t, db.Exec("UPDATE books SET version = ?, name = 'rival'", far+n+1).Error)
				stand.Must(t, db.Exec("UPDATE cards SET version = ?, name = 'rival'", n+1).Error)
				if err := db.Save(&s).Error; err != nil {
					t.Errorf("at %d and %d: %v", far+n+1, n+1, err)
				}
				if far > 0 && n > 3 {
					break
				}
			}
		}
		stand.Equal(t, "book", stand.Row[book](t, db, 1).Name, "rival")
		stand.Equal(t, "card", stand.Row[card](t, db, 1).Name, "rival")
		stand.Equal(t, "struct", s.Books[0].Version, 1)
		s.Books[0].Name = "mine"
		stand.MustStale(t, db.Save(&s.Books[0]).Error)
		stand.Must(t, db.Exec("DELETE FROM books").Error)
		stand.MustStale(t, db.Save(&s).Error)
	})
}

// So it is where versions are ignored.
func TestIgnoreVersion_atAnyVersionOfARival(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&shelf{}, &book{}, &card{}, &date{}}, func(t *testing.T, db *gorm.DB) {
		c := card{Name: "mine"}
		stand.Must(t, db.Create(&c).Error)
		for n := 1; n < 253; n++ {
			stand.Must(t, db.Exec("UPDATE cards SET version = ?, name = 'rival'", n).Error)
			copied := []card{c}
			if err := db.Clauses(gormlock.IgnoreVersion()).Save(&copied).Error; err != nil {
				t.Errorf("at %d: %v", n, err)
			}
			if now := stand.Row[card](t, db, 1); now.Name != "mine" || int(now.Version) <= n || now.Version != copied[0].Version {
				t.Errorf("at %d: %+v", n, now)
			}
		}
	})
}

// GORM takes the time of creation after the plan of a write is made.
func TestChildren_whoseTimesAreChecked(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&shelf{}, &book{}, &card{}, &date{}})
	s := shelf{Dates: []date{{ID: 101}}}
	stand.Must(t, db.Create(&s).Error)
	s.Dates = append(s.Dates, date{ID: 102}, date{})
	stand.Must(t, db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&s).Error)
	stand.Must(t, db.Save(&[]date{{ID: 104}, {}}).Error)
	stand.Must(t, db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&date{ID: 105}).Error)
	stand.Must(t, db.Model(&s).Association("Dates").Append(&date{ID: 106}))
	stand.Equal(t, "rows", db.Find(&[]date{}).RowsAffected, 7)
	for _, d := range s.Dates {
		d.Name = "new"
		stand.Must(t, db.Save(&d).Error)
	}
}
