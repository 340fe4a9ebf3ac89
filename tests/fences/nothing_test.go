package fences_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A write that sets no column of the fenced model and saves its associations is guarded too, though GORM sends nothing for the model.
func TestFence_ofAWriteThatSetsNothing(t *testing.T) {
	t.Parallel()
	withAndWithoutTransactions(t, []any{&report{}, &reportNote{}}, func(t *testing.T, db *gorm.DB) {
		first := stand.Issue(t, db, "report", 1)
		r := report{Body: "draft"}
		stand.Must(t, stand.With(db, first).Create(&r).Error)
		writes := map[string]func(db *gorm.DB) error{
			"append":  func(db *gorm.DB) error { return db.Model(&r).Association("Notes").Append(&reportNote{}) },
			"replace": func(db *gorm.DB) error { return db.Model(&r).Association("Notes").Replace(&reportNote{}) },
			"save":    func(db *gorm.DB) error { r.Notes = []reportNote{{}}; return db.Select("Notes").Save(&r).Error },
			"updates": func(db *gorm.DB) error { r.Notes = []reportNote{{}}; return db.Select("Notes").Updates(&r).Error },
		}
		sessions := map[string]func(token fence.Token) *gorm.DB{
			"context": func(token fence.Token) *gorm.DB { return db.WithContext(fence.NewContext(context.Background(), token)) },
			"clause":  func(token fence.Token) *gorm.DB { return db.Clauses(gormlock.Fence(token)) },
		}
		notes := func() (n int64) {
			stand.MustDo(t, db.Model(&reportNote{}).Count(&n))
			return n
		}
		for name, write := range writes {
			for by, session := range sessions {
				if name == "replace" && by == "clause" {
					continue // GORM unlinks notes by a statement of their own, to which the clause does not belong
				}
				before := notes()
				r.Notes = nil
				stand.Must(t, write(session(first)))
				if notes() == before {
					t.Errorf("%s, %s: the holder stored nothing", name, by)
				}
			}
		}
		late := stand.Issue(t, db, "report", 1)
		for name, write := range writes {
			for by, session := range sessions {
				for in, begun := range map[string]func(func(tx *gorm.DB) error) error{
					"alone": func(write func(tx *gorm.DB) error) error { return write(session(first)) },
					"in a transaction": func(write func(tx *gorm.DB) error) error {
						return session(first).Session(&gorm.Session{}).Transaction(func(tx *gorm.DB) error { return write(tx) })
					},
				} {
					if by == "clause" && in != "alone" {
						continue // the clause is the transaction's, not the statement's
					}
					before := notes()
					r.Notes = nil
					refused := mustBeFenced(t, begun(write))
					stand.Equal(t, name+", "+by+", "+in+": the later one", refused.Latest, late)
					stand.Equal(t, name+", "+by+", "+in+": notes", notes(), before)
				}
			}
		}
	})
}

// What an association of a fenced model loses is guarded by the token of the context, though GORM sends nothing for the model.
func TestFence_ofWhatAnAssociationLoses(t *testing.T) {
	t.Parallel()
	withAndWithoutTransactions(t, []any{&report{}, &reportNote{}}, func(t *testing.T, db *gorm.DB) {
		first := stand.Issue(t, db, "report", 1)
		r := report{Body: "draft", Notes: []reportNote{{}, {}}}
		stand.Must(t, stand.With(db, first).Create(&r).Error)
		linked := func() (n int64) {
			stand.MustDo(t, db.Model(&reportNote{}).Where("report_id = ?", r.ID).Count(&n))
			return n
		}
		stand.Must(t, stand.With(db, first).Model(&r).Association("Notes").Delete(&r.Notes[0]))
		stand.Equal(t, "the holder's delete: notes", linked(), 1)
		stand.Issue(t, db, "report", 1)
		late, note := stand.With(db, first), r.Notes[0]
		for name, loses := range map[string]func(tx *gorm.DB) error{
			"clear":           func(tx *gorm.DB) error { return tx.Model(&r).Association("Notes").Clear() },
			"delete":          func(tx *gorm.DB) error { return tx.Model(&r).Association("Notes").Delete(&note) },
			"unscoped delete": func(tx *gorm.DB) error { return tx.Model(&r).Association("Notes").Unscoped().Delete(&note) },
			"replace by none": func(tx *gorm.DB) error { return tx.Model(&r).Association("Notes").Replace() },
			"append of a map": func(tx *gorm.DB) error {
				return tx.Model(&r).Association("Notes").Append(&map[string]any{"report_id": r.ID})
			},
			"in a transaction": func(tx *gorm.DB) error {
				return tx.Transaction(func(tx *gorm.DB) error { return tx.Model(&r).Association("Notes").Clear() })
			},
		} {
			_ = mustBeFenced(t, loses(late))
			stand.Equal(t, name+": notes", linked(), 1)
		}
	})
}

type sharedLine struct {
	ID                 int64
	OwnerID, UnownedID *int64
}

type sharedOwner struct {
	ID    int64
	Body  string
	Lines []sharedLine `gorm:"foreignKey:OwnerID"`
	Boxes []sharedBox  `gorm:"many2many:shared_links"`
	Fence int64        `gorm:"not null;default:0" gormlock:"fence,key=owner"`
}

type sharedBox struct {
	ID     int64
	Body   string
	Owners []sharedOwner `gorm:"many2many:shared_links"`
	Fence  int64         `gorm:"not null;default:0" gormlock:"fence,key=box"`
}

type sharedUnowned struct {
	ID    int64
	Lines []sharedLine `gorm:"foreignKey:UnownedID"`
}

// The token is compared for the model whose association it is, and for no other one that has such children too.
func TestFence_ofChildrenThatSeveralModelsHave(t *testing.T) {
	t.Parallel()
	withAndWithoutTransactions(t, []any{&sharedOwner{}, &sharedBox{}, &sharedUnowned{}, &sharedLine{}}, func(t *testing.T, db *gorm.DB) {
		owner, box := stand.Issue(t, db, "owner", 1), stand.Issue(t, db, "box", 1)
		both := stand.With(db, owner, box)
		u := sharedUnowned{Lines: []sharedLine{{}, {}}}
		o := sharedOwner{Lines: []sharedLine{{}, {}}, Boxes: []sharedBox{{}, {}}}
		stand.MustDo(t, db.Create(&u))
		stand.MustDo(t, both.Create(&o))
		stand.Issue(t, db, "box", 1) // box is late from here on
		stand.Must(t, both.Model(&o).Association("Lines").Delete(&o.Lines[0]))
		stand.Must(t, both.Model(&o).Association("Lines").Replace(&sharedLine{}))
		stand.Must(t, both.Model(&o).Association("Boxes").Delete(&o.Boxes[0]))
		_ = mustBeFenced(t, both.Model(&o.Boxes[0]).Association("Owners").Clear())
		stand.Issue(t, db, "owner", 1) // and owner from here on
		late := stand.With(db, owner)
		stand.Must(t, late.Model(&u).Association("Lines").Delete(&u.Lines[0]))
		stand.Must(t, late.Model(&u).Association("Lines").Append(&map[string]any{"unowned_id": u.ID}))
		stand.Must(t, late.Model(&u).Association("Lines").Clear())
		_ = mustBeFenced(t, late.Model(&o).Association("Boxes").Clear())
		_ = mustBeFenced(t, late.Model(&o).Association("Lines").Clear())
		stand.Must(t, late.Clauses(gormlock.IgnoreFence()).Model(&o).Association("Lines").Clear())
		two := stand.With(db, owner, stand.Issue(t, db, "owner", 2))
		if err := two.Model(&o).Association("Boxes").Clear(); !errors.Is(err, gormlock.ErrFenceMissing) {
			t.Errorf("two tokens that fit: %v", err)
		}
	})
}
