package once_test

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

const callers = 16

// Sixteen callers of one key at once: the effect is there once, and all of them have its result.
func TestOnce_manyAtOnce(t *testing.T) {
	t.Parallel()
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		t.Run(level.String(), func(t *testing.T) {
			t.Parallel()
			db := open(t)
			for round := range 5 {
				key := fmt.Sprint("order/", round)
				var ran atomic.Int64
				results := rush(t, func(i int) (by string, err error) {
					err = gormlock.Transaction(db, func(tx *gorm.DB) (err error) {
						by, err = gormlock.Once(tx, key, func(tx *gorm.DB) (string, error) {
							ran.Add(1)
							return charge(key, fmt.Sprint(i))(tx)
						})
						return err
					}, gormlock.Isolation(level), gormlock.Attempts(20))
					return by, err
				})
				for _, by := range results {
					if by == "" || by != results[0] {
						t.Errorf("the callers got %q", results)
						break
					}
				}
				if n := charges(t, db, key); n != 1 {
					t.Errorf("charged %d times; the function ran %d times", n, ran.Load())
				}
			}
		})
	}
}

// Half of the functions fail after they have charged: the charge of one that did not is there, once.
func TestOnce_manyAtOnceAndSomeFail(t *testing.T) {
	t.Parallel()
	db := open(t)
	errDeclined := errors.New("declined")
	var turn atomic.Int64
	results := rush(t, func(i int) (by string, err error) {
		err = db.Transaction(func(tx *gorm.DB) error {
			by, err = gormlock.Once(tx, "k", func(tx *gorm.DB) (string, error) {
				by, err := charge("k", fmt.Sprint(i))(tx)
				if err == nil && turn.Add(1) <= callers/2 {
					err = errDeclined
				}
				return by, err
			})
			if errors.Is(err, errDeclined) {
				by = "declined"
				return nil // the transaction goes on
			}
			return err
		})
		return by, err
	})
	by := map[string]int{}
	for _, r := range results {
		by[r]++
	}
	if by["declined"] != callers/2 || len(by) != 2 || charges(t, db, "k") != 1 {
		t.Errorf("the callers got %v, %d charges", by, charges(t, db, "k"))
	}
}

// The control: the same with a look before the insert charges more than once, so the tests above would see it.
func TestOnce_aLookBeforeIsNotEnough(t *testing.T) {
	t.Parallel()
	db := open(t)
	looked := make(chan struct{}, callers)
	everybody := make(chan struct{})
	go func() {
		for range callers {
			<-looked
		}
		close(everybody)
	}()
	rush(t, func(i int) (string, error) {
		err := db.Transaction(func(tx *gorm.DB) error {
			var n int64
			if err := tx.Model(&Charge{}).Where("key = 'k'").Count(&n).Error; err != nil {
				return err
			}
			looked <- struct{}{}
			<-everybody
			if n > 0 {
				return nil
			}
			_, err := charge("k", fmt.Sprint(i))(tx)
			return err
		})
		return "", err
	})
	if n := charges(t, db, "k"); n < 2 {
		t.Errorf("charged %d times: nothing was to be kept apart", n)
	}
}

func rush(t *testing.T, call func(i int) (string, error)) []string {
	t.Helper()
	results := make([]string, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			var err error
			if results[i], err = call(i); err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	all.Wait()
	return results
}

// A second caller waits for the transaction of the first, and gets what it left: its result, or the key.
func TestOnce_theSecondWaits(t *testing.T) {
	t.Parallel()
	for end, want := range map[string]string{"COMMIT": "first", "ROLLBACK": "second"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			first := db.Begin()
			defer first.Rollback()
			if _, err := gormlock.Once(first, "k", charge("k", "first")); err != nil {
				t.Fatal(err)
			}
			got := make(chan string)
			second := db.Begin()
			defer second.Rollback()
			var pid int
			if err := second.Raw("select pg_backend_pid()").Scan(&pid).Error; err != nil {
				t.Fatal(err)
			}
			go func() {
				by, err := gormlock.Once(second, "k", charge("k", "second"))
				if err == nil {
					err = second.Commit().Error
				}
				got <- fmt.Sprint(by, err)
			}()
			pgtest.WaitBackendBlocked(t, pid)
			if end == "COMMIT" {
				first.Commit()
			} else {
				first.Rollback()
			}
			if by := <-got; by != want+"<nil>" {
				t.Errorf("the second caller got %s, want %s", by, want)
			}
			if n := charges(t, db, "k"); n != 1 {
				t.Errorf("charged %d times", n)
			}
		})
	}
}

// Who does not want to wait takes a lock first, as the doc says; lock_timeout bounds the wait, and the transaction goes on.
func TestOnce_waitsAreBounded(t *testing.T) {
	t.Parallel()
	db := open(t)
	lock := pgtest.Key(t)
	first := db.Begin()
	defer first.Rollback()
	if err := gormlock.AcquireXactLock(first, []lockkey.Key{lock}); err != nil {
		t.Fatal(err)
	}
	if _, err := gormlock.Once(first, "k", charge("k", "first")); err != nil {
		t.Fatal(err)
	}
	err := gormlock.Transaction(db, func(*gorm.DB) error {
		t.Error("it ran beside its twin")
		return nil
	}, gormlock.Locking(lock, gormlock.Try()))
	if !errors.Is(err, gormlock.ErrNotAcquired) {
		t.Error(err)
	}
	err = db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Exec("set local lock_timeout = '50ms'").Error; err != nil {
			return err
		}
		_, err := gormlock.Once(tx, "k", charge("k", "second"))
		if err == nil || gormlock.IsRetryable(err) {
			t.Errorf("a wait that ran out is an answer: %v", err)
		}
		_, err = charge("another", "second")(tx)
		return err
	})
	if err != nil || charges(t, db, "another") != 1 {
		t.Errorf("the transaction is not usable: %v", err)
	}
}

// A key stored after the snapshot of a transaction cannot be read in it: an error that another run cures.
func TestOnce_snapshotBeforeTheKey(t *testing.T) {
	t.Parallel()
	db := open(t)
	late := db.Begin(&sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	defer late.Rollback()
	if err := late.Find(&[]Charge{}).Error; err != nil {
		t.Fatal(err)
	}
	if err := db.Transaction(func(tx *gorm.DB) error {
		_, err := gormlock.Once(tx, "k", charge("k", "first"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := gormlock.Once(late, "k", charge("k", "late")); !gormlock.IsRetryable(err) {
		t.Errorf("not retryable: %v", err)
	}
	late.Rollback()
	if n := charges(t, db, "k"); n != 1 {
		t.Errorf("charged %d times", n)
	}
}

// A connection that dies under the function takes the effect and the key with it.
func TestOnce_connectionDies(t *testing.T) {
	t.Parallel()
	db := open(t)
	err := db.Transaction(func(tx *gorm.DB) error {
		_, err := gormlock.Once(tx, "k", func(tx *gorm.DB) (string, error) {
			var pid int
			by, err := charge("k", "dies")(tx)
			if err := errors.Join(err, tx.Raw("select pg_backend_pid()").Scan(&pid).Error); err != nil {
				return "", err
			}
			pgtest.Kill(t, pid)
			return by, nil
		})
		if err == nil {
			t.Error("no error")
		}
		return nil // dropped
	})
	if err == nil {
		t.Error("the commit succeeded")
	}
	if n := charges(t, db, "k") + int64(len(keys(t, db))); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}
