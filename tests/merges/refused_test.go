package merges_test

import (
	"database/sql"
	"errors"
	"reflect"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// What cannot be merged is refused before anything is executed, and mine stays as it is.
func TestSaveMerged_refuses(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&page{}, &stand.LinedOrder{}, &stand.LinedLine{}})
	base, mine := opened(t, db)
	mine.Title = "mine"
	was := mine
	unread, other, keyless := page{ID: base.ID}, base, base
	other.ID, keyless.ID = base.ID+1, 0
	plain := pgtest.Open(t, pgtest.Schema())
	for name, c := range map[string]struct {
		call func() error
		is   error
	}{
		"no plugin":       {func() error { return gormlock.SaveMerged(plain, &mine, &base) }, gormlock.ErrNotInstalled},
		"one pointer":     {func() error { return gormlock.SaveMerged(db, &mine, &mine) }, nil},
		"nil":             {func() error { return gormlock.SaveMerged(db, &mine, nil) }, nil},
		"no pointer":      {func() error { return gormlock.SaveMerged(db, mine, &base) }, nil},
		"slices":          {func() error { return gormlock.SaveMerged(db, &[]page{mine}, &[]page{base}) }, nil},
		"types":           {func() error { return gormlock.SaveMerged(db, &mine, &plainPage{ID: base.ID}) }, nil},
		"keys":            {func() error { return gormlock.SaveMerged(db, &mine, &other) }, nil},
		"no key":          {func() error { return gormlock.SaveMerged(db, &mine, &keyless) }, gorm.ErrPrimaryKeyRequired},
		"base never read": {func() error { return gormlock.SaveMerged(db, &mine, &unread) }, gormlock.ErrVersionMissing},
		"Select":          {func() error { return gormlock.SaveMerged(db.Select("title"), &mine, &base) }, nil},
		"Omit":            {func() error { return gormlock.SaveMerged(db.Omit("title"), &mine, &base) }, nil},
		"Select in a scope": {func() error {
			return gormlock.SaveMerged(db.Scopes(func(q *gorm.DB) *gorm.DB { return q.Select("title") }), &mine, &base)
		}, nil},
		"the model":     {func() error { return gormlock.SaveMerged(db.Model(&plainPage{}), &mine, &base) }, nil},
		"ExpectVersion": {func() error { return gormlock.SaveMerged(db.Clauses(gormlock.ExpectVersion(1)), &mine, &base) }, nil},
		"IgnoreVersion": {func() error { return gormlock.SaveMerged(db.Clauses(gormlock.IgnoreVersion()), &mine, &base) }, nil},
		"IfUnchanged":   {func() error { return gormlock.SaveMerged(db.Clauses(gormlock.IfUnchanged(&base)), &mine, &base) }, nil},
		"a row lock": {func() error {
			return gormlock.SaveMerged(db.Clauses(gormlock.RowLock(gormlock.ForUpdate, gormlock.Try())), &mine, &base)
		}, nil},
	} {
		if err := c.call(); err == nil || errors.Is(err, gormlock.ErrStale) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(mine, was) {
			t.Errorf("%s: mine is %+v", name, mine)
		}
	}
	stand.Equal(t, "version", stand.Row[page](t, db, base.ID).Version, 1)

	order := stand.LinedOrder{Title: "a", Lines: []stand.LinedLine{{Qty: 1}}}
	stand.Must(t, db.Create(&order).Error)
	changed := order
	changed.Title, changed.Lines = "b", append([]stand.LinedLine{{Qty: 2}}, order.Lines...)
	if err := gormlock.SaveMerged(db, &changed, &order); err == nil {
		t.Error("a line that would not be saved is dropped")
	}
	stand.Must(t, gormlock.SaveMerged(db.Omit("Lines"), &changed, &order))
	stand.Equal(t, "title", stand.Row[stand.LinedOrder](t, db, order.ID).Title, "b")
	stand.Equal(t, "lines", len(changed.Lines), 2)
	again := changed
	again.Title = "c"
	stand.Must(t, gormlock.SaveMerged(db, &again, &changed)) // they are the same in both
}

// What tx carries else counts: a table, a lock, PreserveVersion, a fence, the isolation.
func TestSaveMerged_heeds(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&page{}})
	stand.Must(t, db.Table("others").AutoMigrate(&page{}))
	base := page{Title: "title"}
	stand.Must(t, db.Table("others").Create(&base).Error)
	mine := base
	mine.Title = "mine"
	stand.Must(t, gormlock.SaveMerged(db.Table("others"), &mine, &base))
	var title string
	stand.Must(t, db.Raw("SELECT title FROM others").Scan(&title).Error)
	stand.Equal(t, "title", title, "mine")

	base, mine = opened(t, db)
	mine.Title = "mine"
	stand.Must(t, gormlock.SaveMerged(db.Clauses(gormlock.PreserveVersion()), &mine, &base))
	stand.Equal(t, "version", mine.Version, 1)
	mustBeRow(t, db, mine)

	base, mine = opened(t, db)
	mine.Visits = 7
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	stand.Equal(t, "the version of an unversioned column's change", mine.Version, 1)
	mustBeRow(t, db, mine)

	base, mine = opened(t, db)
	mine.Title = "mine"
	err := gormlock.Transaction(db, func(tx *gorm.DB) error {
		var n int64
		if err := tx.Model(&page{}).Count(&n).Error; err != nil { // takes the snapshot
			return err
		}
		theirs := base
		stand.Must(t, db.Model(&theirs).Update("body", "theirs").Error)
		return gormlock.SaveMerged(tx, &mine, &base)
	}, gormlock.Isolation(sql.LevelRepeatableRead))
	if e := stand.MustBeStale(t, err); !gormlock.IsRetryable(err) {
		t.Errorf("%+v", e)
	}
	stand.Equal(t, "title", mine.Title, "mine")
}

// fencedPage is written by the latest holder alone.
type fencedPage struct {
	ID    int64
	Title string
	Body  string
	Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=page"`
}

func TestSaveMerged_fences(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&fencedPage{}})
	held := stand.With(db, stand.Issue(t, db, "page", 1))
	base := fencedPage{Title: "a"}
	stand.Must(t, held.Create(&base).Error)
	mine := base
	mine.Title = "mine"
	if err := gormlock.SaveMerged(db, &mine, &base); !errors.Is(err, gormlock.ErrFenceMissing) {
		t.Error(err)
	}
	stand.Must(t, gormlock.SaveMerged(held, &mine, &base))
	second := stand.Issue(t, db, "page", 1)
	late := mine
	late.Body = "late"
	if err := gormlock.SaveMerged(held, &late, &mine); !errors.Is(err, gormlock.ErrFenced) || late.Title != "mine" {
		t.Error(err, late)
	}
	stand.Must(t, gormlock.SaveMerged(db.Clauses(gormlock.Fence(second)), &late, &mine))
	stand.Equal(t, "fence", late.Fence, second.Number)
	stand.Equal(t, "row", stand.Row[fencedPage](t, db, late.ID), late)
}
