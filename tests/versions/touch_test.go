package versions_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type touched struct {
	ID        int64
	Version   int64 `gormlock:"version"`
	UpdatedAt time.Time
}

func TestTouchAndVerify(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&touched{}, &stand.Account{}}, touchAndVerify)
}

func touchAndVerify(t *testing.T, db *gorm.DB) {
	a := stand.Made(t, db, touched{UpdatedAt: time.Now().Add(-time.Hour)})
	old := a
	stand.Must(t, gormlock.Touch(db, &a))
	stand.Equal(t, "version", a.Version, 2)
	if !a.UpdatedAt.After(old.UpdatedAt) {
		t.Error("updated_at", a.UpdatedAt)
	}
	stand.Equal(t, "row", stand.Row[touched](t, db, a.ID).Version, 2)
	stand.Equal(t, "op", stand.MustBeStale(t, gormlock.Touch(db, &old)).Op, "touch")
	stand.Equal(t, "old", old.Version, 1)
	stand.Must(t, gormlock.Touch(db.Clauses(gormlock.IgnoreVersion()), &touched{ID: a.ID}))
	stand.Equal(t, "row", stand.Row[touched](t, db, a.ID).Version, 3)
	b := stand.Made(t, db, stand.Account{})
	stand.Must(t, gormlock.Touch(db, &b))
	stand.Equal(t, "row", stand.Row[stand.Account](t, db, b.ID), b)

	if err := gormlock.VerifyVersion(db, &b); !errors.Is(err, gormlock.ErrNoTransaction) {
		t.Error(err)
	}
	stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
		stand.Must(t, gormlock.VerifyVersion(tx, &b))
		e := stand.MustBeStale(t, gormlock.VerifyVersion(tx, &a))
		stand.Equal[any](t, "actual", e.Actual, int64(3))
		return nil
	}))
}

// TestVerifyVersionKeepsWhatTheCallAsks: what stands on the transaction beside the row is not dropped.
func TestVerifyVersionKeepsWhatTheCallAsks(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{Balance: 1})
	key := pgtest.Key(t)
	in := func(verify func(tx *gorm.DB) error) error { return db.Transaction(verify) }

	stand.Must(t, in(func(tx *gorm.DB) error {
		stand.Must(t, gormlock.VerifyVersion(tx.Scopes(gormlock.WithXactLock(key)), &a))
		rival := gormlock.Transaction(db, func(*gorm.DB) error { return nil }, gormlock.Locking(key, gormlock.Try()))
		if !errors.Is(rival, gormlock.ErrNotAcquired) {
			t.Errorf("a rival takes the lock: %v", rival)
		}
		return nil
	}))
	if err := in(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx.Where("balance = 2"), &a) }); !errors.Is(err, gorm.ErrRecordNotFound) {
		t.Errorf("a condition that leaves the row out: %v", err)
	}
	_ = stand.MustBeStale(t, in(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx.Clauses(gormlock.ExpectVersion(2)), &a) }))
	stand.Must(t, in(func(tx *gorm.DB) error {
		return gormlock.VerifyVersion(tx.Clauses(gormlock.ExpectVersion(1)), &stand.Account{ID: a.ID})
	}))
	if err := in(func(tx *gorm.DB) error { return gormlock.VerifyVersion(tx.Clauses(gormlock.IgnoreVersion()), &a) }); err == nil {
		t.Error("a check that ignores the version says yes")
	}
}

// TestVerifyVersionWithARowLock: the lock that the call asks for is the one taken, and one that holds no writer off is
// refused.
func TestVerifyVersionWithARowLock(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{ID: 1})
	stand.InTx(t, db, func(tx *gorm.DB) {
		stand.Must(t, gormlock.VerifyVersion(tx, &a))
		stand.Equal(t, "rows kept from readers", len(stand.NewRowRival(t).LockedAgainst("accounts", "FOR KEY SHARE")), 0)
		for _, strong := range []clause.Expression{gormlock.RowLock(gormlock.ForUpdate), clause.Locking{Strength: "UPDATE"}, gormlock.RowLock(gormlock.ForUpdate, gormlock.Of("accounts"))} {
			stand.MustDo(t, tx.SavePoint("before"))
			stand.Must(t, gormlock.VerifyVersion(tx.Clauses(strong), &a))
			stand.Equal(t, "rows kept from readers", len(stand.NewRowRival(t).LockedAgainst("accounts", "FOR KEY SHARE")), 1)
			stand.MustDo(t, tx.RollbackTo("before"))
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
	release := stand.NewRowRival(t).Hold("select * from accounts for update")
	defer release()
	stand.InTx(t, db, func(tx *gorm.DB) {
		if err := gormlock.VerifyVersion(tx.Clauses(gormlock.RowLock(gormlock.ForShare, gormlock.Try())), &a); !errors.Is(err, gormlock.ErrNotAcquired) {
			t.Errorf("Try, while another holds the row: %v", err)
		}
	})
}
