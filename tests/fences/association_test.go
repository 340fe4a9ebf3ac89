package fences_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type binder struct {
	ID      int64
	Title   string
	OwnerID *int64
	Owner   *binderOwner
	Pages   []page
	Labels  []sticker `gorm:"many2many:binder_labels"`
	Fence   int64     `gormlock:"fence,key=binder"`
}

type page struct {
	ID, BinderID int64
	Text         string
	Fence        int64 `gormlock:"fence,key=binder"`
}

type binderOwner struct {
	ID    int64
	Name  string
	Fence int64 `gormlock:"fence,key=owner"`
}

type sticker struct {
	ID    int64
	Name  string
	Fence int64 `gormlock:"fence,key=binder"`
}

var binders = []any{&binderOwner{}, &sticker{}, &binder{}, &page{}}

// G14: what is saved with a struct is guarded too, each model by the token that fits it.
func TestFencedAssociations(t *testing.T) {
	t.Parallel()
	withAndWithoutTransactions(t, binders, fencedAssociations)
}

func fencedAssociations(t *testing.T, db *gorm.DB) {
	token, owner := stand.Issue(t, db, "binder", 1), stand.Issue(t, db, "owner", 1)
	tx := stand.With(db, token, owner)
	b := binder{Title: "a", Owner: &binderOwner{Name: "o"}, Pages: []page{{Text: "1"}, {Text: "2"}}, Labels: []sticker{{Name: "l"}}}
	stand.Must(t, tx.Create(&b).Error)
	stand.Equal(t, "owner", stand.Row[binderOwner](t, db, 1).Fence, owner.Number)
	stand.Equal(t, "page", stand.Row[page](t, db, 2).Fence, token.Number)
	stand.Equal(t, "sticker", stand.Row[sticker](t, db, 1).Fence, token.Number)
	stand.Equal(t, "in memory", [4]int64{b.Fence, b.Owner.Fence, b.Pages[1].Fence, b.Labels[0].Fence}, [4]int64{token.Number, owner.Number, token.Number, token.Number})

	// The token of a clause reaches them, and only those it fits.
	b.Title = "b"
	mustMissToken(t, db.Clauses(gormlock.Fence(token)).Save(&b).Error, "binder_owners", `"owner"`)
	stand.Equal(t, "stored", stand.Row[binder](t, db, 1).Title, "a")
	b.Owner = nil
	b.Pages = append(b.Pages, page{Text: "3"})
	stand.Must(t, db.Clauses(gormlock.Fence(token)).Save(&b).Error)
	stand.Equal(t, "page", stand.Row[page](t, db, 3).Fence, token.Number)
	b.Pages[0].Text = "1b"
	stand.Must(t, db.Session(&gorm.Session{FullSaveAssociations: true}).Clauses(gormlock.Fence(token)).Save(&b).Error)
	stand.Equal(t, "page", stand.Row[page](t, db, 1), b.Pages[0])

	// Superseded: nothing of it is stored, neither owner nor page.
	later := stand.Issue(t, db, "binder", 1)
	b.Title, b.Owner, b.Pages = "late", &binderOwner{Name: "late"}, append(b.Pages, page{Text: "late"})
	before := b.Pages[3]
	mustFenced(t, tx.Save(&b).Error)
	mustFenced(t, tx.Create(&binder{Owner: &binderOwner{Name: "late"}, Pages: []page{{Text: "late"}}}).Error)
	mustFenced(t, tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(&b).Error)
	for _, model := range []any{&binder{}, &page{}, &binderOwner{}} {
		var n int64
		stand.Must(t, db.Model(model).Where(map[string]any{textColumn(model): "late"}).Count(&n).Error)
		stand.Equal(t, "late rows", n, 0)
	}
	stand.Equal(t, "in memory", b.Pages[3], before)
	stand.Equal(t, "in memory", b.Fence, token.Number)
	// Swallowed, it is the error of the commit: the owner was stored already (V5).
	mustFenced(t, tx.Transaction(func(tx *gorm.DB) error {
		mustFenced(t, tx.Save(&b).Error)
		return nil
	}))

	// A page that was written with a later token refuses the parent's statement.
	stand.Must(t, db.Exec("UPDATE pages SET fence = ? WHERE id = 2", later.Number+5).Error)
	tx = stand.With(db, later, owner)
	b.Owner, b.Pages = nil, b.Pages[:3]
	e := mustBeFenced(t, tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(&b).Error)
	stand.Equal(t, "table", e.Table, "pages")
	stand.Equal[any](t, "page", e.PrimaryKey["id"], int64(2))
	stand.Equal(t, "latest", e.Latest, fence.Token{Number: later.Number + 5})
	if !db.SkipDefaultTransaction { // else the parent's statement was one by itself
		stand.Equal(t, "parent", stand.Row[binder](t, db, 1).Title, "b")
		stand.Equal(t, "in memory", b.Fence, token.Number)
	}
	e = mustBeFenced(t, tx.Save(&b).Error)
	stand.Equal(t, "linked", e.Table, "pages")
	stand.Must(t, db.Exec("UPDATE pages SET fence = 1 WHERE id = 2").Error)
	stand.Must(t, tx.Save(&b).Error)
	stand.Equal(t, "linked", stand.Row[page](t, db, 2).Fence, later.Number)
}

func textColumn(model any) string {
	switch model.(type) {
	case *binder:
		return "title"
	case *page:
		return "text"
	}
	return "name"
}

func TestFencedAssociationMode(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, binders)
	token := stand.Issue(t, db, "binder", 1)
	tx := stand.With(db, token)
	b := binder{Title: "a", Pages: []page{{Text: "1"}, {Text: "2"}}}
	stand.Must(t, tx.Create(&b).Error)
	stand.Must(t, tx.Model(&b).Association("Pages").Append(&page{Text: "3"}))
	stand.Must(t, tx.Model(&b).Association("Labels").Append(&sticker{Name: "l"}))
	for name, write := range map[string]func(*gorm.DB) error{
		"append": func(tx *gorm.DB) error {
			b.Pages = nil // what a refused one has put there
			return tx.Model(&b).Association("Pages").Append(&page{Text: "late"})
		},
		"replace": func(tx *gorm.DB) error { return tx.Model(&b).Association("Pages").Replace(&page{Text: "late"}) },
		"delete":  func(tx *gorm.DB) error { return tx.Model(&b).Association("Pages").Delete(&page{ID: 1}) },
		"clear":   func(tx *gorm.DB) error { return tx.Model(&b).Association("Pages").Clear() },
		"delete with the parent": func(tx *gorm.DB) error {
			return tx.Select("Pages").Delete(&binder{ID: b.ID}).Error
		},
	} {
		mustMissToken(t, write(db))
		late := stand.Issue(t, db, "binder", 1)
		if err := write(tx); err == nil {
			t.Errorf("%s: a superseded holder was not refused", name)
		} else {
			mustFenced(t, err)
		}
		var n int64
		stand.Must(t, db.Model(&page{}).Where("binder_id = ? AND text <> 'late'", b.ID).Count(&n).Error)
		stand.Equal(t, name+": pages", n, 3)
		tx = stand.With(db, late)
	}
	stand.Must(t, tx.Model(&b).Association("Pages").Delete(&page{ID: 1}))
	stand.Equal(t, "unlinked", stand.Row[page](t, db, 1).BinderID, 0)
	stand.Must(t, tx.Select("Pages", "Labels").Delete(&b).Error)
	var n int64
	stand.Must(t, db.Model(&page{}).Where("binder_id = ?", b.ID).Count(&n).Error)
	stand.Equal(t, "pages", n, 0)
}

// V5: a parent whose child was refused is not committed, though the caller drops the error.
func TestV5_ParentOfARefusedChild(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, append([]any{&stand.LinedOrder{}, &stand.LinedLine{}}, binders...))
	o := stand.LinedOrder{Title: "a", Lines: []stand.LinedLine{{Qty: 1}}}
	stand.Must(t, db.Create(&o).Error)
	stand.Must(t, db.Model(&stand.LinedLine{}).Where("1=1").Update("qty", 5).Error)
	o.Title, o.Lines[0].Qty = "b", 9
	stand.MustStale(t, db.Transaction(func(tx *gorm.DB) error {
		stand.MustStale(t, tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(&o).Error)
		return nil
	}))
	stand.Equal(t, "stored", stand.Row[stand.LinedOrder](t, db, o.ID).Title, "a")
	stand.Equal(t, "in memory", o.Version, 1)

	owner := stand.Issue(t, db, "owner", 1)
	p := binderOwner{Name: "a"}
	stand.Must(t, stand.With(db, owner).Create(&p).Error)
	kept := keeper{Title: "a", Pages: []page{{Text: "1"}}}
	mustMissToken(t, stand.With(db, owner).Transaction(func(tx *gorm.DB) error {
		stand.Must(t, tx.AutoMigrate(&keeper{}))
		mustMissToken(t, tx.Create(&kept).Error, "pages")
		return nil
	}))
}

// keeper has children with a fence, and none of its own.
type keeper struct {
	ID    int64
	Title string
	Pages []page `gorm:"foreignKey:BinderID;constraint:-"`
}
