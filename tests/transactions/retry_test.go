package transactions_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type tally struct {
	ID int64
	N  int
}

// TestV10_AttemptsCountsEverything: read-modify-write of one row by 16 writers at SERIALIZABLE, where the loser gets
// 40001 and only a new run can be right.
func TestV10_AttemptsCountsEverything(t *testing.T) {
	t.Parallel()
	const writers, each = 16, 50
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Schema())
	if err := db.AutoMigrate(&tally{}); err != nil {
		t.Fatal(err)
	}
	db.Create(&tally{ID: 1})
	var retries atomic.Int64
	opts := []gormlock.TxOption{
		gormlock.Attempts(200), gormlock.Isolation(sql.LevelSerializable),
		gormlock.OnRetry(func(int, error) { retries.Add(1) }),
	}
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				err := gormlock.Transaction(db, func(tx *gorm.DB) error {
					var row tally
					if err := tx.First(&row, 1).Error; err != nil {
						return err
					}
					row.N++
					return tx.Save(&row).Error
				}, opts...)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var row tally
	db.First(&row, 1)
	if row.N != writers*each {
		t.Errorf("counted %d of %d", row.N, writers*each)
	}
	if retries.Load() == 0 {
		t.Error("no retry was needed: the test cannot see a conflict")
	}
}

// TestW3_AttemptsBelongToTheCall: one option value serves many calls, each with its full budget.
func TestW3_AttemptsBelongToTheCall(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()))
	var told []string
	opts := []gormlock.TxOption{gormlock.Attempts(3), gormlock.OnRetry(func(attempt int, err error) {
		told = append(told, fmt.Sprint(attempt, " ", err))
	})}
	for range 2 {
		runs := 0
		told = nil
		err := gormlock.Transaction(db, func(*gorm.DB) error {
			runs++
			return gormlock.ErrStale
		}, opts...)
		if runs != 3 || !errors.Is(err, gormlock.ErrStale) || !strings.Contains(err.Error(), "gave up after 3 attempts") {
			t.Errorf("%d runs, %v", runs, err)
		}
		if len(told) != 2 || !strings.HasPrefix(told[0], "1 ") || !strings.HasPrefix(told[1], "2 ") {
			t.Errorf("told %q", told)
		}
	}
}

func TestAttemptsRepeatOnlyWhatARepetitionCures(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()))
	runs := 0
	err := gormlock.Transaction(db, func(*gorm.DB) error {
		runs++
		return errOwn
	}, gormlock.Attempts(5))
	if runs != 1 || !errors.Is(err, errOwn) {
		t.Errorf("%d runs, %v", runs, err)
	}
}

// untilGranted repeats what was not granted too.
var untilGranted = gormlock.RetryIf(func(err error) bool {
	return gormlock.IsRetryable(err) || errors.Is(err, gormlock.ErrNotAcquired) || errors.Is(err, gormlock.ErrLockTimeout)
})

// TestAttemptsRetryTheLockOfTheBegin: each run asks for the lock anew.
func TestAttemptsRetryTheLockOfTheBegin(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()))
	key := pgtest.Key(t)
	release := rival(t, key)
	runs := 0
	err := gormlock.Transaction(db, func(*gorm.DB) error {
		runs++
		return nil
	}, gormlock.Locking(key, gormlock.Try()), gormlock.Attempts(50), untilGranted, gormlock.OnRetry(func(attempt int, _ error) {
		if attempt == 3 {
			release()
		}
	}))
	if err != nil || runs != 1 {
		t.Errorf("%d runs, %v", runs, err)
	}
}

func TestAttemptsEndWithCtx(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()))
	ctx, cancel := context.WithCancel(context.Background())
	runs := 0
	err := gormlock.Transaction(db.WithContext(ctx), func(*gorm.DB) error {
		if runs++; runs == 2 {
			cancel()
		}
		return gormlock.ErrStale
	}, gormlock.Attempts(1000))
	if runs != 2 || !errors.Is(err, context.Canceled) || !errors.Is(err, gormlock.ErrStale) {
		t.Errorf("%d runs, %v", runs, err)
	}
}

// TestNestedTransactionRunsOnce: inside of another transaction a retry could not be right.
func TestNestedTransactionRunsOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()))
	key := pgtest.Key(t)
	runs := 0
	err := db.Transaction(func(tx *gorm.DB) error {
		err := gormlock.Transaction(tx, func(*gorm.DB) error {
			runs++
			if !pgtest.Held(t, key) {
				t.Error("not held inside")
			}
			return gormlock.ErrNotAcquired
		}, gormlock.Attempts(5), gormlock.Locking(key))
		if !errors.Is(err, gormlock.ErrNotAcquired) {
			t.Error(err)
		}
		pgtest.AssertFree(t, key) // G16: the savepoint it was taken under is rolled back
		for _, o := range []gormlock.TxOption{gormlock.ReadOnly(), gormlock.Isolation(sql.LevelSerializable)} {
			if err := gormlock.Transaction(tx, func(*gorm.DB) error { return nil }, o); !errors.Is(err, gormlock.ErrOption) {
				t.Errorf("an option that comes too late: %v", err)
			}
		}
		return tx.Exec("SELECT 1").Error
	})
	if err != nil || runs != 1 {
		t.Errorf("%d runs, %v", runs, err)
	}
}

func TestTransactionRefuses(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()))
	plain := pgtest.Open(t)
	ran := func(*gorm.DB) error { t.Error("fn ran"); return nil }
	for name, c := range map[string]struct {
		db   *gorm.DB
		fn   func(*gorm.DB) error
		opts []gormlock.TxOption
		want error
	}{
		"a nil db":             {nil, ran, nil, gorm.ErrInvalidDB},
		"an empty db":          {&gorm.DB{}, ran, nil, gorm.ErrInvalidDB},
		"no plugin":            {plain, ran, nil, gormlock.ErrNotInstalled},
		"a nil fn":             {db, nil, nil, gormlock.ErrOption},
		"a nil option":         {db, ran, []gormlock.TxOption{nil}, gormlock.ErrOption},
		"no attempt":           {db, ran, []gormlock.TxOption{gormlock.Attempts(0)}, gormlock.ErrOption},
		"a nil OnRetry":        {db, ran, []gormlock.TxOption{gormlock.OnRetry(nil)}, gormlock.ErrOption},
		"no time":              {db, ran, []gormlock.TxOption{gormlock.Locking(gormlock.Key("x"), gormlock.Timeout(0))}, gormlock.ErrOption},
		"a db with an error":   {failedDB(db), ran, nil, errOwn},
		"an unknown isolation": {db, ran, []gormlock.TxOption{gormlock.Isolation(sql.LevelLinearizable), gormlock.Locking(gormlock.Key("x"))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := gormlock.Transaction(c.db, c.fn, c.opts...)
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

func failedDB(db *gorm.DB) *gorm.DB {
	failed := db.Session(&gorm.Session{NewDB: true})
	_ = failed.AddError(errOwn)
	return failed
}

// TestV9_TimeoutBeforeTheSnapshotLeavesNothing: the session lock that carries a lock into a REPEATABLE READ transaction
// is never left behind, however the wait for it ends (P1, L5).
func TestV9_TimeoutBeforeTheSnapshotLeavesNothing(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 150
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.MaxConns(writers))
	keys := make([]gormlock.TxOption, 3)
	all := pgtest.Key(t)
	keys[0] = gormlock.Locking(all, gormlock.Timeout(time.Millisecond))
	keys[1] = gormlock.Locking(pgtest.PairKey(t))
	keys[2] = gormlock.Locking(pgtest.Key(t), gormlock.Shared())
	var held, late atomic.Int64
	var inside atomic.Int64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				err := gormlock.Transaction(db, func(tx *gorm.DB) error {
					if inside.Add(1) != 1 {
						t.Error("two inside")
					}
					defer inside.Add(-1)
					held.Add(1)
					return tx.Exec("SELECT pg_sleep(0.001)").Error
				}, append(keys, gormlock.Isolation(sql.LevelRepeatableRead))...)
				switch {
				case errors.Is(err, gormlock.ErrLockTimeout):
					late.Add(1)
				case err != nil:
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if held.Load() == 0 || late.Load() == 0 {
		t.Errorf("held %d, late %d: the test saw no contention", held.Load(), late.Load())
	}
	pgtest.AssertFree(t, all) // while the pool keeps all its connections open
}

// V10: a read-modify-write of one hot row.
func TestV10_Retry(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}}, pgtest.MaxConns(16))
	var a stand.Account
	stand.Must(t, db.Create(&a).Error)
	const writers, rounds = 16, 50
	errs := make(chan error, writers)
	for range writers {
		go func() {
			for range rounds {
				if err := gormlock.Transaction(db, func(tx *gorm.DB) error {
					var mine stand.Account
					if err := tx.First(&mine, a.ID).Error; err != nil {
						return err
					}
					mine.Balance++
					return tx.Save(&mine).Error
				}, gormlock.Attempts(20)); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range writers {
		stand.Must(t, <-errs)
	}
	stand.Equal(t, "counter", stand.Row[stand.Account](t, db, a.ID).Balance, writers*rounds)
}
