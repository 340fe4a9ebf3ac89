package merges_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type known struct {
	A int
}

// narrow has fields that hold less than their columns.
type narrow struct {
	ID      int64
	Title   string // which may be NULL
	Number  int64
	Exact   float64 `gorm:"type:numeric"`
	Doc     known   `gorm:"type:jsonb;serializer:json"`
	Since   int64   `gorm:"type:timestamptz;serializer:unixtime"`
	Other   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// What the field does not hold is not overwritten: a row that others have written is refused then, and not as a conflict.
func TestSaveMerged_moreThanTheFieldHolds(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		db := stand.Versioned(t, []any{&narrow{}}, opts...)
		open := func() (base, mine narrow) {
			stand.Must(t, db.Exec("DELETE FROM narrows").Error)
			stand.Must(t, db.Exec(`INSERT INTO narrows (exact, doc, since) VALUES (0.12345678901234567890123, '{"A":1,"B":2}', '2026-01-01 00:00:00.5Z')`).Error)
			stand.Must(t, db.First(&base).Error)
			return base, base
		}
		all := func(id int64) (row string) {
			stand.Must(t, db.Raw("SELECT (n.*)::text FROM narrows n WHERE id = ?", id).Scan(&row).Error)
			return row
		}
		for column, change := range map[string]func(*narrow){
			"exact": func(n *narrow) { n.Exact = 2.5 }, "doc": func(n *narrow) { n.Doc.A = 5 }, "since": func(n *narrow) { n.Since = 7 },
		} {
			base, mine := open()
			change(&mine)
			stand.Must(t, gormlock.SaveMerged(db, &mine, &base)) // nobody has written it since
			if row := stand.Row[narrow](t, db, mine.ID); !reflect.DeepEqual(row, mine) {
				t.Errorf("%s: mine is %+v, the row %+v", column, mine, row)
			}

			base, mine = open()
			stand.Must(t, db.Exec("UPDATE narrows SET other = 'theirs', version = version + 1").Error)
			mine.Title = "mine"
			stand.Must(t, gormlock.SaveMerged(db, &mine, &base)) // which leaves the column alone
			if row := all(mine.ID); !strings.Contains(row, "0.12345678901234567890123") || !strings.Contains(row, "B") || !strings.Contains(row, ".5") {
				t.Error(row)
			}

			for _, theirs := range []string{"other = 'theirs'", "exact = 0.12345678901234567890999", `doc = '{"A":1,"B":3}'`} {
				base, mine = open()
				stand.Must(t, db.Exec("UPDATE narrows SET version = version + 1, "+theirs).Error)
				change(&mine)
				was, had := mine, all(mine.ID)
				err := gormlock.SaveMerged(db, &mine, &base)
				if err == nil || errors.Is(err, gormlock.ErrStale) || !strings.Contains(err.Error(), column) || mine != was || all(mine.ID) != had {
					t.Errorf("%s, %s: %v; mine is %+v", column, theirs, err, mine)
				}
			}
		}

		// NULL is the zero of a field that cannot hold it.
		base, mine := open()
		stand.Must(t, db.Exec("UPDATE narrows SET other = 'theirs', version = version + 1").Error)
		mine.Title, mine.Number = "mine", 4
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		if row := stand.Row[narrow](t, db, mine.ID); row.Title != "mine" || row.Number != 4 || row.Other != "theirs" || row != mine {
			t.Errorf("%+v, %+v", row, mine)
		}
	})
}

// sealed has a column that is written otherwise each time.
type sealed struct {
	ID      int64
	Secret  nonced
	Title   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// What a type writes otherwise each time is compared as it is read.
func TestSaveMerged_encrypted(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&sealed{}}, func(t *testing.T, db *gorm.DB) {
		base := sealed{Secret: nonced{"s"}}
		stand.Must(t, db.Create(&base).Error)
		mine, theirs := base, base
		theirs.Title = "theirs"
		stand.Must(t, db.Save(&theirs).Error)
		mine.Secret.Text = "mine"
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		if row := stand.Row[sealed](t, db, base.ID); row.Secret.Text != "mine" || row.Title != "theirs" {
			t.Errorf("%+v", row)
		}
		late := base
		late.Secret.Text = "late"
		mustConflict(t, gormlock.SaveMerged(db, &late, &base))
	})
}

// area is a box, of which PostgreSQL compares no more than the size.
type area struct {
	ID   int64
	Area string `gorm:"type:box"`
	Span string `gorm:"type:interval"`
	Spot string `gorm:"type:point"`
	Note string
}

// second is a time that its column rounds.
type second struct {
	ID   int64
	At   time.Time `gorm:"type:timestamptz(0)"`
	Cost float64   `gorm:"type:numeric(6,2)"`
	Note string
}

// IfUnchanged means the same: values of which the server says "equal" although they are others are changes.
func TestIfUnchanged_ofOddTypes(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&area{}, &second{}})
	stand.Must(t, db.Create(&area{Area: "(1,1),(0,0)", Span: "1 mon", Spot: "(1,1)"}).Error)
	var before area
	stand.Must(t, db.First(&before).Error)
	update := func() error {
		return db.Clauses(gormlock.IfUnchanged(&before)).Model(&area{ID: before.ID}).Update("note", before.Note).Error
	}
	stand.Must(t, update())
	for _, theirs := range []string{"area = '(3,3),(2,2)'", "span = '30 days'", "spot = '(2,2)'"} {
		stand.Must(t, db.Exec("UPDATE areas SET "+theirs).Error)
		stand.MustStale(t, update())
		stand.Must(t, db.Exec("UPDATE areas SET area = ?, span = ?, spot = ?", before.Area, before.Span, before.Spot).Error)
		stand.Must(t, update())
	}

	// A struct as it was created: the column has rounded what it still holds.
	created := second{At: time.Date(2026, 7, 1, 12, 0, 15, 7e8, time.UTC), Cost: 1.005001}
	stand.Must(t, db.Create(&created).Error)
	stand.Must(t, db.Clauses(gormlock.IfUnchanged(&created)).Model(&second{ID: created.ID}).Update("note", "x").Error)
}
