package mariadb_test

import (
	"errors"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Eight writers read, add one and save, a hundred times each: with a version none of the 800 is lost.
func TestNoUpdateIsLost(t *testing.T) {
	t.Parallel()
	dsn := mariaserver.DSN(t)
	db := mariaserver.OpenDSN(t, dsn, []any{&account{}})
	stand.Must(t, db.Create(&account{ID: 1}).Error)
	increment(t, func() error {
		return gormlock.Transaction(db, func(tx *gorm.DB) error {
			var a account
			if err := tx.First(&a, 1).Error; err != nil {
				return err
			}
			a.Balance++
			return tx.Save(&a).Error
		}, gormlock.Attempts(1000))
	})
	got := stand.Row[account](t, db, 1)
	stand.Equal(t, "increments", got.Balance, 800)
	stand.Equal(t, "version", got.Version, 801)
}

// The control: without the tag the same loses some, so the test above can see a loss.
func TestNoUpdateIsLost_control(t *testing.T) {
	t.Parallel()
	db := open(t, &plain{})
	stand.Must(t, db.Create(&plain{ID: 1}).Error)
	increment(t, func() error {
		var a plain
		if err := db.First(&a, 1).Error; err != nil {
			return err
		}
		a.Balance++
		return db.Save(&a).Error
	})
	if got := stand.Row[plain](t, db, 1).Balance; got >= 800 {
		t.Errorf("%d of 800 increments are there: the control loses none", got)
	}
}

func increment(t *testing.T, once func() error) {
	t.Helper()
	const writers, times = 8, 100
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		wg.Go(func() {
			for range times {
				if err := once(); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	wg.Wait()
	stand.Must(t, errors.Join(errs...))
}
