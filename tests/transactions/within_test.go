package transactions_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// V22: a lock that is not granted in time is an answer. Attempts repeats conflicts, and multiplies no waits.
func TestV22_WaitsAreNotRepeated(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	key := pgtest.Key(t)
	release := rival(t, key)
	defer release()
	for name, wait := range map[string]gormlock.LockOption{"Timeout": gormlock.Timeout(50 * time.Millisecond), "Try": gormlock.Try()} {
		runs, retries := 0, 0
		call := func(opts ...gormlock.TxOption) error {
			opts = append(opts, gormlock.Locking(key, wait), gormlock.Attempts(3), gormlock.OnRetry(func(int, error) { retries++ }))
			return gormlock.Transaction(db, func(*gorm.DB) error { runs++; return nil }, opts...)
		}
		if err := call(); !errors.Is(err, gormlock.ErrLockTimeout) && !errors.Is(err, gormlock.ErrNotAcquired) || gormlock.IsRetryable(err) {
			t.Errorf("%s: %v", name, err)
		}
		stand.Equal(t, name+": retries", retries, 0)
		if err := call(gormlock.RetryIf(func(error) bool { return true })); err == nil {
			t.Errorf("%s: no error", name)
		}
		stand.Equal(t, name+": retries that RetryIf asked for", retries, 2)
		stand.Equal(t, name+": runs", runs, 0)
	}
}

// Within bounds the whole call: attempts, pauses, waits and running statements.
func TestWithin_boundsTheWholeCall(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{Balance: 1})
	key := pgtest.Key(t)
	release := rival(t, key)
	defer release()
	for name, call := range map[string]func(opts ...gormlock.TxOption) error{
		"a conflict that never ends": func(opts ...gormlock.TxOption) error {
			return gormlock.Transaction(db, func(tx *gorm.DB) error {
				return tx.Clauses(gormlock.ExpectVersion(7)).Model(&stand.Account{ID: a.ID}).Update("balance", 2).Error
			}, append(opts, gormlock.Attempts(1_000_000))...)
		},
		"a wait": func(opts ...gormlock.TxOption) error {
			return gormlock.Transaction(db, func(*gorm.DB) error { return nil }, append(opts, gormlock.Locking(key))...)
		},
		"a running statement": func(opts ...gormlock.TxOption) error {
			return gormlock.Transaction(db, func(tx *gorm.DB) error { return tx.Exec("SELECT pg_sleep(60)").Error }, opts...)
		},
	} {
		began := time.Now()
		err := call(gormlock.Within(300 * time.Millisecond))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
	}
	for name, option := range map[string]gormlock.TxOption{"Within(0)": gormlock.Within(0), "RetryIf(nil)": gormlock.RetryIf(nil)} {
		if err := gormlock.Transaction(db, func(*gorm.DB) error { return nil }, option); !errors.Is(err, gormlock.ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// V24: a conflict of a transaction with itself is cured by no other run, and says so.
func TestV24_OwnConflicts(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{Balance: 1})
	runs := 0
	err := gormlock.Transaction(db, func(tx *gorm.DB) error {
		runs++
		one, two := stand.Row[stand.Account](t, tx, a.ID), stand.Row[stand.Account](t, tx, a.ID)
		stand.Must(t, tx.Model(&one).Update("balance", 2).Error)
		return tx.Model(&two).Update("balance", 3).Error
	}, gormlock.Attempts(5))
	stand.MustStale(t, err)
	stand.Equal(t, "runs", runs, 1)
	if !strings.Contains(err.Error(), "this transaction itself changed it") {
		t.Error(err)
	}

	ahead := stand.Row[stand.Account](t, db, a.ID)
	ahead.Version = 9
	err = db.Save(&ahead).Error
	stand.MustStale(t, err)
	if !strings.Contains(err.Error(), "did something increment its version by hand?") {
		t.Error(err)
	}
}

// So is one with a statement about many rows, also in a savepoint. If a rival moved the row first, another run helps.
func TestV24_OwnConflictsOfMany(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	bulk := func(tx *gorm.DB) error {
		return tx.Model(&stand.Account{}).Where("id > 0").Update("balance", 7).Error
	}
	for name, c := range map[string]struct {
		write func(tx *gorm.DB) error
		own   bool
	}{
		"bulk":   {bulk, true},
		"nested": {func(tx *gorm.DB) error { return tx.Transaction(bulk) }, true},
		"undone": {func(tx *gorm.DB) error {
			_ = tx.Transaction(func(tx *gorm.DB) error { return errors.Join(bulk(tx), errUndo) })
			return nil
		}, false},
		"a rival":  {func(*gorm.DB) error { return bulk(db) }, false},
		"both":     {func(tx *gorm.DB) error { return errors.Join(bulk(db), bulk(tx)) }, false},
		"no write": {func(*gorm.DB) error { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			stand.MustDo(t, db.Exec("TRUNCATE accounts"))
			stand.Made(t, db, stand.Account{ID: 1})
			runs := 0
			err := gormlock.Transaction(db, func(tx *gorm.DB) error {
				runs++
				read := stand.Row[stand.Account](t, tx, 1)
				if runs == 1 {
					stand.Must(t, c.write(tx))
				} else if c.own {
					t.Error("run again")
				}
				return tx.Model(&read).Update("balance", 3).Error
			}, gormlock.Attempts(5))
			if is := errors.Is(err, gormlock.ErrStale) && strings.Contains(err.Error(), "this transaction itself changed it"); is != c.own || !c.own && err != nil {
				t.Errorf("after %d runs: %v", runs, err)
			}
		})
	}
}
