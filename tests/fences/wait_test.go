package fences_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// DefaultTimeout bounds the wait of every call that locks rows and names no bound, and the transaction goes on as before.
func TestDefaultTimeout_ofCallsThatLockRows(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Plugin(gormlock.New(gormlock.DefaultTimeout(50*time.Millisecond))), pgtest.Schema())
	stand.Must(t, db.AutoMigrate(&stand.Account{}))
	stand.MigrateFence(t, db)
	a := stand.Made(t, db, stand.Account{ID: 1})
	token := stand.Issue(t, db, "report", 1)
	calls := map[string]func(tx *gorm.DB) error{
		"VerifyVersion": func(tx *gorm.DB) error { held := a; return gormlock.VerifyVersion(tx, &held) },
		"VerifyVersion with a row lock": func(tx *gorm.DB) error {
			held := a
			return gormlock.VerifyVersion(tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)), &held)
		},
		"VerifyVersion with conditions": func(tx *gorm.DB) error {
			held := a
			return gormlock.VerifyVersion(tx.Where("id > ?", 0).Scopes(func(q *gorm.DB) *gorm.DB { return q.Where(clause.Gt{Column: "id", Value: 0}) }), &held)
		},
		"LockRow":  func(tx *gorm.DB) error { return gormlock.LockRow(tx, &stand.Account{ID: 1}) },
		"LockRows": func(tx *gorm.DB) error { return gormlock.LockRows(tx, &[]stand.Account{{ID: 1}}) },
		"SaveMerged": func(tx *gorm.DB) error {
			mine, base := a, a
			mine.Balance++
			return gormlock.SaveMerged(tx, &mine, &base)
		},
		"FenceTx": func(tx *gorm.DB) error { return gormlock.FenceTx(tx, token) },
	}
	rival := db.Begin()
	defer rival.Rollback()
	stand.MustDo(t, rival.Exec("UPDATE accounts SET balance = balance"))
	stand.MustDo(t, rival.Exec("UPDATE gormlock_fence SET name = name")) // as a later holder does
	for name, call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		stand.InTx(t, db.WithContext(ctx), func(tx *gorm.DB) {
			if err := call(tx); !errors.Is(err, gormlock.ErrLockTimeout) {
				t.Errorf("%s: %v", name, err)
				return
			}
			var left string
			stand.MustDo(t, tx.Raw("SHOW lock_timeout").Scan(&left))
			stand.Equal(t, name+": lock_timeout", left, "0")
		})
		cancel()
	}
	rival.Rollback()
	for name, call := range calls {
		stand.InTx(t, db, func(tx *gorm.DB) {
			stand.Must(t, call(tx))
			var left string
			stand.MustDo(t, tx.Raw("SHOW lock_timeout").Scan(&left))
			stand.Equal(t, name+": lock_timeout", left, "0")
		})
	}
	stand.InTx(t, db, func(tx *gorm.DB) {
		stand.Must(t, calls["FenceTx"](tx))
		stand.Equal(t, "tokens kept from later holders", len(stand.LockedRows[int64](stand.NewRowRival(t), "gormlock_fence", "token", "FOR NO KEY UPDATE")), 1)
	})
}
