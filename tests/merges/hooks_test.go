package merges_test

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// shelf has columns that a hook can change in place.
type shelf struct {
	ID      int64
	Title   string
	Labels  map[string]string   `gorm:"serializer:json"`
	Deep    map[string][]string `gorm:"serializer:json"`
	Words   []string            `gorm:"serializer:json"`
	Note    *string
	Raw     []byte
	Doc     json.RawMessage
	Packed  []string `gorm:"serializer:gob;type:bytea"`
	Version int64    `gorm:"not null;default:1" gormlock:"version"`
}

// BeforeSave changes whatever is in the struct, in place, where the title says so.
func (s *shelf) BeforeSave(*gorm.DB) error {
	if s.Title == "plain" {
		return nil
	}
	s.Labels["hook"] = s.Title
	s.Deep["k"][0] = s.Title
	s.Words[0], s.Packed[0] = s.Title, s.Title
	*s.Note = s.Title
	s.Raw[0] = s.Title[0]
	s.Doc[1] = s.Title[0]
	return failIf(s.Title == "1 fails")
}

func (s *shelf) AfterSave(*gorm.DB) error { return failIf(s.Title == "1 fails after") }

func newShelf() shelf {
	return shelf{
		Title: "plain", Labels: map[string]string{"a": "b"}, Deep: map[string][]string{"k": {"v"}}, Words: []string{"w"}, Note: text("note"),
		Raw: []byte("raw"), Doc: json.RawMessage(`[7]`), Packed: []string{"p"},
	}
}

// A hook that changes columns in place is heard: what it changed is stored. What it was given is a copy: base is not changed, nor
// mine where the save fails or is rolled back.
func TestSaveMerged_hooksInPlace(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&shelf{}}, func(t *testing.T, db *gorm.DB) {
		for _, shared := range []bool{true, false} {
			open := func(title string) (base, mine, wasBase, was shelf) {
				s := newShelf()
				stand.Must(t, db.Create(&s).Error)
				stand.Must(t, db.Model(&shelf{}).Where("id = ?", s.ID).Session(&gorm.Session{SkipHooks: true}).UpdateColumn("raw", []byte("Raw")).Error)
				read := func() shelf { return stand.Row[shelf](t, db, s.ID) }
				base, mine, wasBase, was = read(), read(), read(), read()
				if shared {
					mine = base
				}
				mine.Title, was.Title = title, title
				return base, mine, wasBase, was
			}
			base, mine, wasBase, _ := open("1 changes")
			stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
			if row := stand.Row[shelf](t, db, mine.ID); !reflect.DeepEqual(row, mine) || row.Labels["hook"] != "1 changes" || row.Deep["k"][0] != "1 changes" ||
				row.Words[0] != "1 changes" || *row.Note != "1 changes" || row.Raw[0] != '1' || string(row.Doc) != "[1]" || row.Packed[0] != "1 changes" {
				t.Errorf("the row is %+v, mine %+v", row, mine)
			}
			if !reflect.DeepEqual(base, wasBase) {
				t.Errorf("base was changed: %+v, was %+v", base, wasBase)
			}
			base, mine, wasBase, was := open("1 is rolled back")
			labels := maps.Clone(mine.Labels)
			err := db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, gormlock.SaveMerged(tx, &mine, &base))
				return errHook
			})
			if !errors.Is(err, errHook) || !reflect.DeepEqual(mine, was) || !reflect.DeepEqual(base, wasBase) || !maps.Equal(labels, mine.Labels) {
				t.Errorf("after a rollback mine is %+v, was %+v; base %+v", mine, was, base)
			}
			for _, title := range []string{"1 fails", "1 fails after"} {
				base, mine, wasBase, was = open(title)
				if err := gormlock.SaveMerged(db, &mine, &base); !errors.Is(err, errHook) || !reflect.DeepEqual(mine, was) || !reflect.DeepEqual(base, wasBase) {
					t.Errorf("%s: %v: mine is %+v, was %+v; base %+v", title, err, mine, was, base)
				}
			}
		}
	})
}
