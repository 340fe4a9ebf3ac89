package gormlock_test

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// A holder that was superseded wakes up and finishes its write. The tokens are issued by hand here; otherwise they come with
// the lock, in its context: sessionlock and lease put them there.
func ExampleFence() {
	type Report struct {
		ID    int64
		Body  string
		Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
	}
	t := pgtest.NewExample() // a PostgreSQL, and an empty schema in it
	defer t.End()
	db, pool := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New())), pgtest.SQLDB(t, pgtest.Schema())
	ctx, key := context.Background(), gormlock.Key("report", 1)
	if err := errors.Join(db.AutoMigrate(&Report{}), fence.Migrate(ctx, pool)); err != nil {
		fmt.Println(err)
		return
	}
	first, err := fence.Issue(ctx, pool, key)
	fmt.Println(err)

	report := Report{Body: "draft"}
	fmt.Println(db.Create(&report).Error)

	held := db.WithContext(fence.NewContext(ctx, first)) // what Do and Bind of a lock do
	fmt.Println(held.Create(&report).Error, report.Fence == first.Number)

	second, err := fence.Issue(ctx, pool, key)
	fmt.Println(err)
	err = db.Clauses(gormlock.Fence(second)).Model(&report).Update("body", "the second's").Error
	fmt.Println(err, report.Fence == second.Number)

	err = held.Model(&report).Update("body", "the first's").Error
	fmt.Println(errors.Is(err, gormlock.ErrFenced), report.Body)
	// Output:
	// <nil>
	// gormlock: fencing token missing: reports: the context carries no token of a key whose name begins with "report": use the context of a lock that was acquired with one, Fence, or IgnoreFence
	// <nil> true
	// <nil>
	// <nil> true
	// true the second's
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
