package gormlock_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

type touched struct {
	ID        int64
	Version   int64 `gormlock:"version"`
	UpdatedAt time.Time
}

func TestTouchAndVerify(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&touched{}, &account{}}, touchAndVerify)
}

func touchAndVerify(t *testing.T, db *gorm.DB) {
	a := touched{UpdatedAt: time.Now().Add(-time.Hour)}
	must(t, db.Create(&a).Error)
	old := a
	must(t, gormlock.Touch(db, &a))
	equal(t, "version", a.Version, 2)
	if !a.UpdatedAt.After(old.UpdatedAt) {
		t.Error("updated_at", a.UpdatedAt)
	}
	equal(t, "row", row[touched](t, db, a.ID).Version, 2)
	equal(t, "op", mustBeStale(t, gormlock.Touch(db, &old)).Op, "touch")
	equal(t, "old", old.Version, 1)
	must(t, gormlock.Touch(db.Clauses(gormlock.IgnoreVersion()), &touched{ID: a.ID}))
	equal(t, "row", row[touched](t, db, a.ID).Version, 3)
	b := account{}
	must(t, db.Create(&b).Error)
	must(t, gormlock.Touch(db, &b))
	equal(t, "row", row[account](t, db, b.ID), b)

	if err := gormlock.VerifyVersion(db, &b); !errors.Is(err, gormlock.ErrNoTransaction) {
		t.Error(err)
	}
	must(t, db.Transaction(func(tx *gorm.DB) error {
		must(t, gormlock.VerifyVersion(tx, &b))
		e := mustBeStale(t, gormlock.VerifyVersion(tx, &a))
		equal[any](t, "actual", e.Actual, int64(3))
		return nil
	}))
}
