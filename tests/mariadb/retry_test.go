package mariadb_test

import (
	"database/sql"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Two transactions that lock two rows in opposite orders: the one that the server gives up runs again.
func TestAttempts_repeatsADeadlock(t *testing.T) {
	t.Parallel()
	db := open(t, &plain{})
	stand.Must(t, db.Create([]plain{{ID: 1}, {ID: 2}}).Error)
	var runs atomic.Int64
	var first sync.WaitGroup
	first.Add(2)
	transfer := func(from, to int64) error {
		met := false
		return gormlock.Transaction(db, func(tx *gorm.DB) error {
			runs.Add(1)
			if err := tx.Exec("UPDATE plains SET balance = balance - 1 WHERE id = ?", from).Error; err != nil {
				return err
			}
			if !met {
				met = true
				first.Done()
				first.Wait()
			}
			return tx.Exec("UPDATE plains SET balance = balance + 1 WHERE id = ?", to).Error
		}, gormlock.Attempts(5))
	}
	var wg sync.WaitGroup
	var errs [2]error
	wg.Go(func() { errs[0] = transfer(1, 2) })
	wg.Go(func() { errs[1] = transfer(2, 1) })
	wg.Wait()
	stand.Must(t, errors.Join(errs[:]...))
	if runs.Load() < 3 {
		t.Error("there was no deadlock:", runs.Load(), "runs")
	}
	for id := range int64(2) {
		stand.Equal(t, "balance", stand.Row[plain](t, db, id+1).Balance, 0)
	}
}

// After a deadlock the server has rolled the transaction back and would commit what follows statement for statement: it is
// refused, and so is the commit.
func TestADeadlockEndsTheTransaction(t *testing.T) {
	t.Parallel()
	db := open(t, &plain{}, &account{})
	stand.Must(t, db.Create([]plain{{ID: 1}, {ID: 2}}).Error)
	a := account{ID: 1, Balance: 1}
	stand.Must(t, db.Create(&a).Error)

	victim, rival := begin(t, db), begin(t, db)
	stand.Must(t, victim.Model(&a).Update("balance", 2).Error)
	stand.Must(t, victim.Exec("UPDATE plains SET balance = 1 WHERE id = 1").Error)
	for range 20 { // the one that has written less is given up
		stand.Must(t, rival.Exec("INSERT INTO plains (balance) VALUES (7),(7),(7),(7)").Error)
	}
	stand.Must(t, rival.Exec("UPDATE plains SET balance = 1 WHERE id = 2").Error)
	done := make(chan error, 1)
	go func() { done <- rival.Exec("UPDATE plains SET balance = 2 WHERE id = 1").Error }()
	err := victim.Transaction(func(tx *gorm.DB) error { // a savepoint, which is gone with the rest
		return tx.Exec("UPDATE plains SET balance = 2 WHERE id = 2").Error
	})
	stand.Must(t, <-done)
	if err == nil || !gormlock.IsRetryable(err) {
		t.Fatal("no deadlock:", err)
	}
	err = victim.Exec("INSERT INTO plains (balance) VALUES (99)").Error
	if err == nil || !strings.Contains(err.Error(), "rolled this transaction back") || !gormlock.IsRetryable(err) {
		t.Error("a statement after the deadlock:", err)
	}
	if err := victim.Commit().Error; err == nil {
		t.Error("the commit says nothing")
	}
	stand.Must(t, rival.Commit().Error)
	var left int64
	stand.Must(t, db.Model(&plain{}).Where("balance = 99").Count(&left).Error)
	stand.Equal(t, "rows written after the deadlock", left, 0)
	stand.Equal(t, "version in memory", a.Version, 1)
	stand.Equal(t, "version", stand.Row[account](t, db, 1).Version, 1)
}

// A wait that innodb_lock_wait_timeout ends is repeated; one that the caller has bounded is his answer.
func TestAttempts_repeatsALockWaitTimeout(t *testing.T) {
	t.Parallel()
	db := open(t, &plain{})
	stand.Must(t, db.Create(&plain{ID: 1}).Error)
	holder := begin(t, db)
	stand.Must(t, holder.Exec("UPDATE plains SET balance = 5 WHERE id = 1").Error)
	runs := 0
	err := gormlock.Transaction(db, func(tx *gorm.DB) error {
		if runs++; runs == 2 {
			stand.Must(t, holder.Commit().Error)
		}
		if err := tx.Exec("SET innodb_lock_wait_timeout = 1").Error; err != nil {
			return err
		}
		return tx.Exec("UPDATE plains SET balance = balance + 1 WHERE id = 1").Error
	}, gormlock.Attempts(3))
	stand.Must(t, err)
	stand.Equal(t, "runs", runs, 2)
	stand.Equal(t, "balance", stand.Row[plain](t, db, 1).Balance, 6)
}

// Isolation is that of the transaction; a version is compared with the row as it is, not as the snapshot shows it.
func TestIsolation(t *testing.T) {
	t.Parallel()
	db := open(t, &account{})
	stand.Must(t, db.Create(&account{ID: 1}).Error)
	for level, sees := range map[sql.IsolationLevel]bool{sql.LevelReadCommitted: true, sql.LevelRepeatableRead: false} {
		stand.Must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
			before, after := account{}, account{}
			stand.Must(t, tx.First(&before, 1).Error)
			stand.Must(t, db.Exec("UPDATE accounts SET balance = balance + 1 WHERE id = 1").Error)
			stand.Must(t, tx.First(&after, 1).Error)
			stand.Equal(t, level.String(), after.Balance > before.Balance, sees)
			return nil
		}, gormlock.Isolation(level)))
	}
	runs := 0
	stand.Must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
		var a account
		stand.Must(t, tx.First(&a, 1).Error)
		if runs++; runs == 1 {
			stand.Must(t, db.Exec("UPDATE accounts SET version = version + 1, balance = 40 WHERE id = 1").Error)
		}
		err := tx.Model(&a).Update("balance", a.Balance+1).Error
		if runs == 1 {
			stand.Equal[any](t, "actual", stand.MustBeStale(t, err).Actual, int64(2))
		}
		return err
	}, gormlock.Isolation(sql.LevelRepeatableRead), gormlock.Attempts(3)))
	stand.Equal(t, "balance", stand.Row[account](t, db, 1).Balance, 41)
}
