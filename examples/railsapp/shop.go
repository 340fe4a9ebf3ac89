package main

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/examples/internal/tally"
	"github.com/gormlock/gormlock/lockkey/compat"
)

// Account is the table that Rails made. The tag says whose rules its version follows.
type Account struct {
	ID          int64
	Balance     int64
	LockVersion int32 `gorm:"not null;default:0" gormlock:"version,rails"`
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// UnawareAccount is the same table in a program that has never heard of lock_version.
type UnawareAccount struct {
	ID      int64
	Balance int64
}

// TableName is that of Account.
func (UnawareAccount) TableName() string { return "accounts" }

// Invoice is the other table.
type Invoice struct {
	ID       int64
	Number   int64
	IssuedBy string
}

// deposit reads, adds and saves, as deposit in shop.rb does.
func deposit(db *gorm.DB, id, amount int64) (tally.Report, error) {
	r := tally.Report{Done: 1, Amount: amount}
	for {
		var account Account
		if err := db.First(&account, id).Error; err != nil {
			return tally.Report{}, err
		}
		account.Balance += amount
		switch err := db.Save(&account).Error; {
		case errors.Is(err, gormlock.ErrStale): // ActiveRecord::StaleObjectError
			r.Again++
		default:
			return r, err
		}
	}
}

// depositUnaware is deposit without a version.
func depositUnaware(db *gorm.DB, id, amount int64) (tally.Report, error) {
	var account UnawareAccount
	if err := db.First(&account, id).Error; err != nil {
		return tally.Report{}, err
	}
	account.Balance += amount
	return tally.Report{Done: 1, Amount: amount}, db.Save(&account).Error
}

// withdraw holds the row: account.with_lock { … }.
func withdraw(db *gorm.DB, id, amount int64) (tally.Report, error) {
	var r tally.Report
	err := gormlock.Transaction(db, func(tx *gorm.DB) error {
		account := Account{ID: id}
		if err := gormlock.LockRow(tx, &account); err != nil || account.Balance < amount {
			return err
		}
		r = tally.Report{Done: 1, Amount: amount}
		return tx.Model(&account).Update("balance", account.Balance-amount).Error
	})
	return r, err
}

// invoiceLock is the lock of with_advisory_lock("invoices") in a Rails without WITH_ADVISORY_LOCK_PREFIX.
var invoiceLock = compat.WithAdvisoryLock("invoices", "")

// invoice takes the next number. Nothing but the lock keeps two from taking the same.
func invoice(db *gorm.DB) (tally.Report, error) {
	err := gormlock.Transaction(db, func(tx *gorm.DB) error {
		var last int64
		if err := tx.Model(&Invoice{}).Select("COALESCE(max(number), 0)").Scan(&last).Error; err != nil {
			return err
		}
		return tx.Create(&Invoice{Number: last + 1, IssuedBy: "Go"}).Error
	}, gormlock.Locking(invoiceLock))
	return tally.Report{Done: 1}, err
}

// performer does the n-th part of a task.
type performer func(db *gorm.DB, n int64, accounts []int64) (tally.Report, error)

var tasks = map[string]performer{
	"deposits": func(db *gorm.DB, n int64, accounts []int64) (tally.Report, error) {
		return deposit(db, accounts[n%int64(len(accounts))], 1+n%7)
	},
	"unaware deposits": func(db *gorm.DB, n int64, accounts []int64) (tally.Report, error) {
		return depositUnaware(db, accounts[n%int64(len(accounts))], 1+n%7)
	},
	"withdrawals": func(db *gorm.DB, n int64, accounts []int64) (tally.Report, error) {
		return withdraw(db, accounts[n%int64(len(accounts))], 1+n%5)
	},
	"invoices": func(db *gorm.DB, _ int64, _ []int64) (tally.Report, error) { return invoice(db) },
}

// perform does a task with all workers of the Go side.
func perform(ctx context.Context, db *gorm.DB, task string, accounts []int64) (tally.Report, error) {
	return tally.Up(workers, each, func(n int64) (tally.Report, error) { return tasks[task](db.WithContext(ctx), n, accounts) })
}
