package mariadb_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// mustBeOver fails where anything is still executed in a transaction that the server has ended.
func mustBeOver(t *testing.T, db, tx *gorm.DB, why string) {
	t.Helper()
	err := tx.Exec("INSERT INTO plains (id) VALUES (99)").Error
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Error("a statement afterwards:", err)
	}
	if err := gormlock.LockRow(tx, &plain{ID: 2}); err == nil {
		t.Error("a row lock afterwards, which lasts for one statement, is no error")
	}
	if err := tx.Commit().Error; err == nil {
		t.Error("the commit says nothing")
	}
	var left int64
	stand.Must(t, db.Model(&plain{}).Where("id = 99").Count(&left).Error)
	stand.Equal(t, "rows written afterwards", left, 0)
}

// With innodb_snapshot_isolation, which newer servers have on, a row that has changed since the snapshot is an error that rolls
// the whole transaction back.
func TestAChangedRowEndsTheTransaction(t *testing.T) {
	t.Parallel()
	db := mariaserver.Open(t, []any{&plain{}, &account{}}, mariaserver.Param("innodb_snapshot_isolation=ON"))
	stand.Must(t, db.Create([]plain{{ID: 1}, {ID: 2}}).Error)
	stand.Must(t, db.Create(&account{ID: 1}).Error)
	for name, write := range map[string]func(tx *gorm.DB) error{
		"an update": func(tx *gorm.DB) error { return tx.Exec("UPDATE plains SET balance = 1 WHERE id = 1").Error },
		"LockRow":   func(tx *gorm.DB) error { return gormlock.LockRow(tx, &plain{ID: 1}) },
		"a lock of rows": func(tx *gorm.DB) error {
			return tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Order("id DESC").Find(&[]plain{}).Error
		},
		"Save": func(tx *gorm.DB) error { return tx.Save(&account{ID: 1, Version: 1}).Error },
	} {
		tx := begin(t, db)
		a := account{ID: 2}
		stand.Must(t, tx.Create(&a).Error)
		stand.Must(t, tx.Find(&[]plain{}).Error) // the snapshot
		stand.Must(t, db.Exec("UPDATE plains SET balance = balance + 1 WHERE id = 1").Error)
		stand.Must(t, db.Exec("UPDATE accounts SET version = version + 1 WHERE id = 1").Error)
		if err := write(tx); err == nil || !gormlock.IsRetryable(err) {
			t.Errorf("%s: %v", name, err)
		}
		mustBeOver(t, db, tx, "rolled this transaction back")
		stand.Equal(t, "version in memory", a.Version, 0)
	}
	runs := 0
	stand.Must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
		stand.Must(t, tx.Find(&[]plain{}).Error)
		if runs++; runs == 1 {
			stand.Must(t, db.Exec("UPDATE plains SET balance = 40 WHERE id = 1").Error)
		}
		return tx.Exec("UPDATE plains SET balance = balance + 1 WHERE id = 1").Error
	}, gormlock.Attempts(3)))
	stand.Equal(t, "balance", stand.Row[plain](t, db, 1).Balance, 41)
}

// A routine that fails may have ended the transaction before.
func TestAFailedRoutineEndsTheTransaction(t *testing.T) {
	t.Parallel()
	db := open(t, &plain{})
	stand.Must(t, db.Create(&plain{ID: 2}).Error)
	stand.Must(t, db.Exec("CREATE PROCEDURE ends() BEGIN ROLLBACK; SIGNAL SQLSTATE '45000'; END").Error)
	stand.Must(t, db.Exec("CREATE PROCEDURE fails() SIGNAL SQLSTATE '45000'").Error)
	tx := begin(t, db)
	stand.Must(t, tx.Exec("INSERT INTO plains (id) VALUES (1)").Error)
	if err := tx.Exec("CALL fails()").Error; err == nil {
		t.Error("no error")
	}
	stand.Must(t, tx.Exec("INSERT INTO plains (id) VALUES (3)").Error) // it is as usable as before
	if err := tx.Exec("CALL ends()").Error; err == nil {
		t.Error("no error")
	}
	mustBeOver(t, db, tx, "rolled this transaction back")
}
