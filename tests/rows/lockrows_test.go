package rows_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

func TestLockRows(t *testing.T) {
	t.Parallel()
	onPurses(t, lockRowsConformance)
}

func lockRowsConformance(t *testing.T, db *gorm.DB, other stand.RowRival) {
	t.Run("locks and reads every element in its place, in one statement", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			tx, recorder := stand.Recorded(tx)
			rows := []purse{{ID: "c"}, {Bank: 1, ID: "a"}, {ID: "a"}, {ID: "c"}}
			if err := gormlock.LockRows(tx, &rows); err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, row := range rows {
				got = append(got, row.Balance)
			}
			if !slices.Equal(got, []int64{100, 1, 100, 100}) || rows[1].ID != "a" || rows[3].ID != "c" || rows[0].Found != "c" {
				t.Fatalf("read %+v", rows)
			}
			if locked := lockedPurses(other); !slices.Equal(locked, []string{"0a", "0c", "1a"}) {
				t.Fatalf("locked are %v", locked)
			}
			if seen := recorder.Seen(); len(seen) != 1 || !strings.Contains(seen[0], `ORDER BY "purses"."bank","purses"."id" FOR UPDATE`) {
				t.Fatalf("sent %q", seen)
			}
		})
	})
	t.Run("writes through the pointers of a slice of pointers", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			b, a := &purse{ID: "b"}, &purse{ID: "a"}
			if err := gormlock.LockRows(tx, &[]*purse{b, a}, gormlock.ForNoKeyUpdate); err != nil {
				t.Fatal(err)
			}
			if a.Balance != 100 || b.Balance != 100 {
				t.Fatal(a, b)
			}
		})
	})
	t.Run("another order of tx does not change that of the locks", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			tx, recorder := stand.Recorded(tx)
			if err := gormlock.LockRows(tx.Order("balance desc"), &[]purse{{ID: "c"}, {ID: "a"}}); err != nil {
				t.Fatal(err)
			}
			if seen := recorder.Seen(); strings.Contains(seen[0], "balance desc") {
				t.Fatalf("sent %q", seen)
			}
		})
	})
	t.Run("no rows is no statement", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			tx, recorder := stand.Recorded(tx)
			if err := gormlock.LockRows(tx, &[]purse{}); err != nil || len(recorder.Seen()) > 0 {
				t.Fatal(err, recorder.Seen())
			}
		})
	})
	t.Run("a row that is gone is ErrRecordNotFound, and the slice as it was", func(t *testing.T) {
		stand.InTx(t, db, func(tx *gorm.DB) {
			rows := []purse{{ID: "a", Balance: 7}, {ID: "x"}}
			err := gormlock.LockRows(tx, &rows)
			if !errors.Is(err, gorm.ErrRecordNotFound) || !strings.Contains(err.Error(), "purses bank=0 id=x") || rows[0].Balance != 7 {
				t.Fatal(rows, err)
			}
		})
	})
	t.Run("Try is all or none", func(t *testing.T) {
		release := other.Hold("select from purses where id = 'c' for update")
		stand.InTx(t, db, func(tx *gorm.DB) {
			rows := []purse{{ID: "a", Balance: 7}, {ID: "c"}}
			if err := gormlock.LockRows(tx, &rows, gormlock.Try()); !errors.Is(err, gormlock.ErrNotAcquired) || rows[0].Balance != 7 {
				t.Fatal(rows, err)
			}
			release()
			if locked := lockedPurses(other); len(locked) > 0 {
				t.Fatalf("locked are %v", locked)
			}
			if err := gormlock.LockRows(tx, &rows, gormlock.Try()); err != nil || rows[0].Balance != 100 {
				t.Fatal(rows, err)
			}
		})
	})
}

// TestLockRowsNeverDeadlocks: transfers in all directions at once. The control locks row by row as the transfer names
// them, and must deadlock.
func TestLockRowsNeverDeadlocks(t *testing.T) {
	t.Parallel()
	db := purses(t, pgtest.Param("deadlock_timeout", "10ms"))
	names := []string{"a", "b", "c"}
	transfers := func(lock func(tx *gorm.DB, pair *[]purse) error) (deadlocks int) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for worker := range 6 {
			wg.Go(func() {
				for i := range 30 {
					from, to := names[(worker+i)%3], names[(worker+i+1+worker%2)%3]
					err := db.Transaction(func(tx *gorm.DB) error {
						pair := []purse{{ID: from}, {ID: to}}
						if err := lock(tx, &pair); err != nil {
							return err
						}
						return errors.Join(
							tx.Exec("update purses set balance = ? where bank = 0 and id = ?", pair[0].Balance-1, from).Error,
							tx.Exec("update purses set balance = ? where bank = 0 and id = ?", pair[1].Balance+1, to).Error)
					})
					if gormlock.IsRetryable(err) {
						mu.Lock()
						deadlocks++
						mu.Unlock()
					} else if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return deadlocks
	}
	if n := transfers(func(tx *gorm.DB, pair *[]purse) error { return gormlock.LockRows(tx, pair) }); n > 0 {
		t.Fatalf("%d deadlocks", n)
	}
	n := 0
	for round := 0; n == 0 && round < 50; round++ { // on a busy machine a round may go by without
		n = transfers(func(tx *gorm.DB, pair *[]purse) error {
			return errors.Join(gormlock.LockRow(tx, &(*pair)[0]), gormlock.LockRow(tx, &(*pair)[1]))
		})
	}
	if n == 0 {
		t.Fatal("the control did not deadlock: this test sees none")
	}
	var sum int64
	stand.MustDo(t, db.Model(&purse{}).Select("sum(balance)").Scan(&sum))
	if sum != 301 {
		t.Fatalf("the purses hold %d of 301", sum)
	}
}
