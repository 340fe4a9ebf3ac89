package gormlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
)

// A holder that was superseded wakes up and finishes its write. The tokens are made by hand here, for a database without
// a table of tokens; on PostgreSQL they come with the lock, in its context: sessionlock and lease put them there.
func ExampleFence() {
	type Report struct {
		ID    int64
		Body  string
		Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
	}
	db, err := gorm.Open(sqlite.Open("file::memory:"), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		fmt.Println(err)
		return
	}
	if pool, err := db.DB(); err == nil {
		defer func() { _ = pool.Close() }()
	}
	if err := errors.Join(db.Use(gormlock.New()), db.AutoMigrate(&Report{})); err != nil {
		fmt.Println(err)
		return
	}
	first, _ := fence.For(gormlock.Key("report", 1), 1)
	second, _ := fence.For(gormlock.Key("report", 1), 2)

	report := Report{Body: "draft"}
	fmt.Println(db.Create(&report).Error)

	ctx := fence.NewContext(context.Background(), first) // what Do and Bind of a lock do
	fmt.Println(db.WithContext(ctx).Create(&report).Error, report.Fence)

	err = db.Clauses(gormlock.Fence(second)).Model(&report).Update("body", "the second's").Error
	fmt.Println(err, report.Fence)

	err = db.WithContext(ctx).Model(&report).Update("body", "the first's").Error
	fmt.Println(err)
	fmt.Println(report.Body, report.Fence)
	// Output:
	// gormlock: fencing token missing: reports: the context carries no token of a key whose name begins with "report": use the context of a lock that was acquired with one, Fence, or IgnoreFence
	// <nil> 1
	// <nil> 2
	// gormlock: reports id=1: token report/1#1 is superseded, the row was written with 2
	// the second's 2
}

// A transaction-level lock whose holder may outlive it in other systems: what it hands out carries a token.
func ExampleFenceFor() {
	type Report struct {
		ID    int64
		Body  string
		Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
	}
	publish := func(db *gorm.DB, report *Report) error {
		return gormlock.Transaction(db, func(tx *gorm.DB) error {
			token, err := gormlock.FenceFor(tx, gormlock.Key("report", report.ID))
			if err != nil {
				return err
			}
			return tx.Clauses(gormlock.Fence(token)).Model(report).Update("body", "published").Error
		})
	}
	_ = publish
}

// Everything that a transaction writes, to models without a fence too, is the latest holder's.
func ExampleFenceTx() {
	closeLedger := func(db *gorm.DB, token fence.Token) error {
		return gormlock.Transaction(db, func(tx *gorm.DB) error {
			if err := gormlock.FenceTx(tx, token); err != nil {
				return err
			}
			return tx.Exec("UPDATE ledger SET closed = true").Error
		})
	}
	_ = closeLedger
}
