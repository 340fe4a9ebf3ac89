package fences_test

import (
	"database/sql"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
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
	stand.OnEach(t, []any{&hookedReport{}, &hookedPair{}}, func(t *testing.T, db *gorm.DB) {
		if db.Name() == "postgres" {
			db = stand.Fenced(t, []any{&hookedReport{}, &hookedPair{}})
		}
		first := someToken(t, db)
		undone := errors.New("undone")
		h := hookedReport{}
		stand.Must(t, stand.With(db, first).Create(&h).Error)
		second := someToken(t, db)
		second.Number = first.Number + 1
		tx := stand.With(db, second)
		was := h.Fence
		check := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, undone) {
				t.Errorf("%s: %v", what, err)
			}
			stand.Equal(t, what, h.Fence, was)
			stand.Equal(t, what+", stored", stand.Row[hookedReport](t, db, h.ID).Fence, was)
		}
		h.Fails = undone
		check("a hook", tx.Model(&h).Update("body", "x").Error)
		check("a hook of Save", tx.Save(&h).Error)
		h.Fails = nil
		check("a transaction", tx.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Model(&h).Update("body", "x").Error)
			stand.Equal(t, "within", h.Fence, sql.NullInt64{Int64: second.Number, Valid: true})
			return undone
		}))
		stand.Must(t, tx.Transaction(func(tx *gorm.DB) error {
			check := tx.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, tx.Save([]*hookedReport{&h}).Error)
				return undone
			})
			if !errors.Is(check, undone) {
				t.Error(check)
			}
			stand.Equal(t, "a savepoint", h.Fence, was)
			return nil
		}))
		begun := tx.Begin()
		stand.Must(t, begun.Model([]*hookedReport{&h}).Update("body", "x").Error)
		made := hookedReport{}
		stand.Must(t, begun.Create(&made).Error)
		stand.Equal(t, "made", made.Fence.Valid, true)
		stand.Must(t, begun.Rollback().Error)
		stand.Equal(t, "Begin", h.Fence, was)
		stand.Equal(t, "made and rolled back", made, hookedReport{})

		// What a hook writes is guarded by the token of the statement.
		h.Pair = &hookedPair{}
		stand.Must(t, db.Clauses(gormlock.Fence(second)).Save(&h).Error)
		stand.Equal(t, "in a hook", number(h.Pair.Fence), second.Number)
		stand.Equal(t, "in memory", h.Fence.Int64, second.Number)
	})
}
