package gormlock_test

import (
	"database/sql"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// hookedReport runs another statement after its own, and may fail there.
type hookedReport struct {
	ID    int64
	Body  string
	Fence sql.NullInt64 `gormlock:"fence,key=report"`
	Pair  *hookedPair   `gorm:"-"`
	Fails error         `gorm:"-"`
}

type hookedPair struct {
	ID    int64
	Fence *int64 `gormlock:"fence,key=report"`
}

func (h *hookedReport) AfterSave(tx *gorm.DB) error {
	if h.Pair != nil {
		if err := tx.Save(h.Pair).Error; err != nil {
			return err
		}
	}
	return h.Fails
}

// V1: after every rollback a struct holds the fence that it held before.
func TestV1_RollbackGivesFencesBack(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&hookedReport{}, &hookedPair{}}, func(t *testing.T, db *gorm.DB) {
		if db.Name() == "postgres" {
			db = fenced(t, []any{&hookedReport{}, &hookedPair{}})
		}
		first := someToken(t, db)
		undone := errors.New("undone")
		h := hookedReport{}
		must(t, with(db, first).Create(&h).Error)
		second := someToken(t, db)
		second.Number = first.Number + 1
		tx := with(db, second)
		was := h.Fence
		check := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, undone) {
				t.Errorf("%s: %v", what, err)
			}
			equal(t, what, h.Fence, was)
			equal(t, what+", stored", row[hookedReport](t, db, h.ID).Fence, was)
		}
		h.Fails = undone
		check("a hook", tx.Model(&h).Update("body", "x").Error)
		check("a hook of Save", tx.Save(&h).Error)
		h.Fails = nil
		check("a transaction", tx.Transaction(func(tx *gorm.DB) error {
			must(t, tx.Model(&h).Update("body", "x").Error)
			equal(t, "within", h.Fence, sql.NullInt64{Int64: second.Number, Valid: true})
			return undone
		}))
		must(t, tx.Transaction(func(tx *gorm.DB) error {
			check := tx.Transaction(func(tx *gorm.DB) error {
				must(t, tx.Save([]*hookedReport{&h}).Error)
				return undone
			})
			if !errors.Is(check, undone) {
				t.Error(check)
			}
			equal(t, "a savepoint", h.Fence, was)
			return nil
		}))
		begun := tx.Begin()
		must(t, begun.Model([]*hookedReport{&h}).Update("body", "x").Error)
		made := hookedReport{}
		must(t, begun.Create(&made).Error)
		equal(t, "made", made.Fence.Valid, true)
		must(t, begun.Rollback().Error)
		equal(t, "Begin", h.Fence, was)
		equal(t, "made and rolled back", made, hookedReport{})

		// What a hook writes is guarded by the token of the statement.
		h.Pair = &hookedPair{}
		must(t, db.Clauses(gormlock.Fence(second)).Save(&h).Error)
		equal(t, "in a hook", number(h.Pair.Fence), second.Number)
		equal(t, "in memory", h.Fence.Int64, second.Number)
	})
}
