package merges_test

import (
	"errors"
	"reflect"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// noted has JSON in a column of texts, which other programs write with blanks of their own.
type noted struct {
	ID      int64
	Labels  map[string]string `gorm:"type:text;serializer:json"`
	Known   known             `gorm:"type:text;serializer:json"`
	Other   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// JSON means the same in a column of texts: how others write it is no reason to refuse a change, what they write is.
func TestSaveMerged_jsonInTexts(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&noted{}})
	for name, c := range map[string]struct {
		theirs string
		labels map[string]string
		ok     bool
	}{
		"blanks":       {`labels = '{ "a" : "b" }', known = '{"A" : 1}'`, map[string]string{"a": "b", "m": "ine"}, true},
		"a value":      {`labels = '{"a":"c"}'`, map[string]string{"a": "b", "m": "ine"}, false},
		"the same":     {`labels = '{"m": "ine", "a": "b"}'`, map[string]string{"a": "b", "m": "ine"}, true},
		"nothing":      {`labels = ''`, map[string]string{"a": "b", "m": "ine"}, false},
		"no change":    {`labels = ''`, map[string]string{"a": "b"}, true},
		"an empty one": {`labels = NULL`, nil, true},
	} {
		base := noted{Labels: map[string]string{"a": "b"}, Known: known{1}}
		stand.Must(t, db.Create(&base).Error)
		stand.Must(t, db.Exec("UPDATE noteds SET version = version + 1, other = 'theirs', "+c.theirs+" WHERE id = ?", base.ID).Error)
		mine := base
		mine.Labels = c.labels
		err := gormlock.SaveMerged(db, &mine, &base)
		if !c.ok {
			mustConflict(t, err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if row := stand.Row[noted](t, db, base.ID); !reflect.DeepEqual(row, mine) || row.Other != "theirs" {
			t.Errorf("%s: %+v, mine %+v", name, row, mine)
		}
	}
	base := noted{Labels: map[string]string{"a": "b"}, Known: known{1}}
	stand.Must(t, db.Create(&base).Error)
	stand.Must(t, db.Exec(`UPDATE noteds SET version = version + 1, known = '{"A":1,"B":2}' WHERE id = ?`, base.ID).Error)
	mine := base
	mine.Known.A = 7
	if err := gormlock.SaveMerged(db, &mine, &base); err == nil || errors.Is(err, gormlock.ErrStale) {
		t.Errorf("B is overwritten: %v", err)
	}
}

// A base made by hand may lack embedded structs: after a rollback mine lacks them again.
func TestSaveMerged_embeddedThatIsNil(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&sheet{}})
	row := sheet{Price: "1", JSON: "{}", Ints: "{}", Name: "n", Work: &address{Street: "w"}, Origin: &Origin{Country: "fr"}}
	row.Document = []byte("{}")
	stand.Must(t, db.Create(&row).Error)
	base := sheet{ID: row.ID, Version: 1, Name: "n"}
	mine := base
	mine.Name = "mine"
	was := mine
	err := db.Transaction(func(tx *gorm.DB) error {
		stand.Must(t, gormlock.SaveMerged(tx, &mine, &base))
		if mine.Work == nil || mine.Work.Street != "w" {
			t.Errorf("%+v", mine)
		}
		return errHook
	})
	if !errors.Is(err, errHook) || !reflect.DeepEqual(mine, was) {
		t.Errorf("%v: mine is %+v, was %+v", err, mine, was)
	}
	mine.Work = &address{Street: "mine"}
	was = mine
	mustConflict(t, gormlock.SaveMerged(db, &mine, &base))
	if !reflect.DeepEqual(mine, was) {
		t.Errorf("mine is %+v, was %+v", mine, was)
	}
}

type dwelling struct {
	ID   int64
	Note string
	Home *home `gorm:"embedded;embeddedPrefix:home_"`
}

type home struct {
	Street string
	No     int
}

// Where base has no embedded struct its columns were NULL. Others who set one of them have not changed the rest.
func TestSaveMerged_embeddedThatOthersMake(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, []any{&dwelling{}}, func(t *testing.T, db *gorm.DB) {
		made := stand.Made(t, db, dwelling{Note: "a"})
		for _, theirs := range []string{"home_no", "home_street"} {
			stand.MustDo(t, db.Exec("UPDATE dwellings SET home_no = NULL, home_street = NULL"))
			base, changed := stand.Row[dwelling](t, db, made.ID), stand.Row[dwelling](t, db, made.ID)
			stand.MustDo(t, db.Exec("UPDATE dwellings SET "+theirs+" = '7'"))
			changed.Home = &home{Street: "mine", No: 3}
			conflict := mustConflict(t, gormlock.SaveMerged(db, &changed, &base))
			if _, is := conflict[theirs]; !is || len(conflict) != 1 {
				t.Errorf("others set %s: %v", theirs, conflict)
			}
			stand.MustStale(t, db.Clauses(gormlock.IfUnchanged(&base)).Model(&dwelling{ID: made.ID}).Update("note", "b").Error)
			stand.MustDo(t, db.Exec("UPDATE dwellings SET home_no = NULL, home_street = NULL"))
			stand.Must(t, gormlock.SaveMerged(db, &changed, &base))
			stand.Equal(t, "street", stand.Row[dwelling](t, db, made.ID).Home.Street, "mine")
		}
	})
}

type bill struct {
	ID      int64
	Note    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type item struct {
	ID     int64
	Qty    int64
	Word   string
	BillID *int64
	Bill   *bill `gormlock:"root"`
}

// A part moves its root when it is merged, and both where it is moved from one to the other.
func TestSaveMerged_movesRoots(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&bill{}, &item{}})
	bills := []bill{{}, {}}
	stand.Must(t, db.Create(&bills).Error)
	versions := func() (v [2]int64) {
		for i := range bills {
			v[i] = stand.Row[bill](t, db, bills[i].ID).Version
		}
		return v
	}
	base := item{Qty: 1, BillID: &bills[0].ID}
	stand.Must(t, db.Create(&base).Error)
	at := versions()
	mine := base
	mine.Qty = 2
	stand.Must(t, db.Model(&item{ID: base.ID}).Update("word", "theirs").Error)
	at[0]++
	stand.Equal(t, "after theirs", versions(), at)
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	at[0]++
	stand.Equal(t, "after mine", versions(), at)
	stand.Equal(t, "word", mine.Word, "theirs")

	base = mine
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	stand.Equal(t, "after nothing", versions(), at)

	mine.BillID = &bills[1].ID
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	at[0]++
	at[1]++
	stand.Equal(t, "after a move", versions(), at)

	base = mine // a rival moves it back meanwhile: both roots are those of the row
	stand.Must(t, db.Model(&item{ID: base.ID}).Update("bill_id", bills[0].ID).Error)
	at = versions()
	mine.Qty = 9
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	at[0]++
	stand.Equal(t, "after a write of what was moved", versions(), at)
	stand.Equal(t, "bill", *mine.BillID, bills[0].ID)
}

// padded has a column that is char(5), which its model does not say.
type padded struct {
	ID    int64
	Code  string
	Other string
}

// A base from a form, without the blanks that the server adds, is the row all the same.
func TestSaveMerged_blanksThatTheServerAdds(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&padded{}})
	stand.Must(t, db.Exec("ALTER TABLE paddeds ALTER code TYPE char(5)").Error)
	stand.Must(t, db.Create(&padded{Code: "ab", Other: "x"}).Error)
	base := padded{ID: 1, Code: "ab", Other: "old"}
	mine := base
	mine.Code = "cd"
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	stand.Equal(t, "mine", mine, padded{1, "cd   ", "x"})
	mine.Code = "ef"
	mustConflict(t, gormlock.SaveMerged(db, &mine, &base))
}
