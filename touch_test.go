package gormlock_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
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

// TestVerifyVersionKeepsWhatTheCallAsks: what stands on the transaction beside the row is not dropped.
func TestVerifyVersionKeepsWhatTheCallAsks(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&account{}})
	a := account{Balance: 1}
	must(t, db.Create(&a).Error)
	key := pgtest.Key(t)
	in := func(verify func(tx *gorm.DB) error) error { return db.Transaction(verify) }

	must(t, in(func(tx *gorm.DB) error {
		must(t, gormlock.VerifyVersion(tx.Scopes(gormlock.WithXactLock(key)), &a))
		rival := gormlock.Transaction(db, func(*gorm.DB) error { return nil }, gormlock.Locking(key, gormlock.Try()))
		if !errors.Is(rival, gormlock.ErrNotAcquired) {
			t.Errorf("a rival takes the lock: %v", rival)
		}
		return nil
	}))
	if err := in(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx.Where("balance = 2"), &a) }); !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Errorf("a condition that leaves the row out: %v", err)
	}
	_ = mustBeStale(t, in(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx.Clauses(gormlock.ExpectVersion(2)), &a) }))
	must(t, in(func(tx *gorm.DB) error {
		return gormlock.VerifyVersion(tx.Clauses(gormlock.ExpectVersion(1)), &account{ID: a.ID})
	}))
	if err := in(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx.Clauses(gormlock.IgnoreVersion()), &a) }); err == nil {
		t.Error("a check that ignores the version says yes")
	}
}
