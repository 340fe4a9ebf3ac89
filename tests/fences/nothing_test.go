package fences_test

import (
	"context"
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
