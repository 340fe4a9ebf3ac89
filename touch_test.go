package gormlock_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

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

// TestVerifyVersionWithARowLock: the lock that the call asks for is the one taken, and one that holds no writer off is
// refused.
func TestVerifyVersionWithARowLock(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&account{}})
	a := account{ID: 1}
	mustDo(t, db.Create(&a))
	inTx(t, db, func(tx *gorm.DB) {
		must(t, gormlock.VerifyVersion(tx, &a))
		equal(t, "rows kept from readers", len(newRowRival(t).lockedAgainst("accounts", "FOR KEY SHARE")), 0)
		for _, strong := range []clause.Expression{gormlock.RowLock(gormlock.ForUpdate), clause.Locking{Strength: "UPDATE"}, gormlock.RowLock(gormlock.ForUpdate, gormlock.Of("accounts"))} {
			mustDo(t, tx.SavePoint("before"))
			must(t, gormlock.VerifyVersion(tx.Clauses(strong), &a))
			equal(t, "rows kept from readers", len(newRowRival(t).lockedAgainst("accounts", "FOR KEY SHARE")), 1)
			mustDo(t, tx.RollbackTo("before"))
		}
		for _, weak := range []clause.Expression{
			gormlock.SkipLocked(), gormlock.RowLock(gormlock.ForKeyShare), gormlock.RowLock(gormlock.ForShare, gormlock.Of("others")), gormlock.RowLock(99),
			clause.Locking{Strength: "key share"}, clause.Locking{Strength: "SHARE", Options: "SKIP LOCKED"},
		} {
			if err := gormlock.VerifyVersion(tx.Clauses(weak), &a); !errors.Is(err, gormlock.ErrOption) {
				t.Errorf("%v: %v", weak, err)
			}
		}
	})
	release := newRowRival(t).hold("select * from accounts for update")
	defer release()
	inTx(t, db, func(tx *gorm.DB) {
		if err := gormlock.VerifyVersion(tx.Clauses(gormlock.RowLock(gormlock.ForShare, gormlock.Try())), &a); !errors.Is(err, gormlock.ErrNotAcquired) {
			t.Errorf("Try, while another holds the row: %v", err)
		}
	})
}
