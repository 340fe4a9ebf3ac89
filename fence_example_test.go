package gormlock_test

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
)

// reportToken issues the next token of the report, as sessionlock and lease do for each holder.
func reportToken(db *gorm.DB) fence.Token {
	pool, err := db.DB()
	if err != nil {
		panic(err)
	}
	token, err := fence.Issue(context.Background(), pool, gormlock.Key("report", 1))
	if err != nil {
		panic(err)
	}
	return token
}

// A holder that was superseded wakes up and finishes its write: the database refuses it. The context of a lock carries its
// token, and Fence is for where there is no such context.
func ExampleFence() {
	type Report struct {
		ID    int64
		Body  string
		Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
	}
	db, end := database(&Report{})
	defer end()
	first := reportToken(db) // of a process that is stopped soon
	report := Report{ID: 1}
	if err := db.Clauses(gormlock.Fence(first)).Create(&report).Error; err != nil {
		fmt.Println(err)
		return
	}

	second := reportToken(db) // of the one that takes over
	for _, holder := range []fence.Token{second, first} {
		err := db.Clauses(gormlock.Fence(holder)).Model(&report).Update("body", "done").Error
		fmt.Println("refused:", errors.Is(err, gormlock.ErrFenced))
	}
	// Output:
	// refused: false
	// refused: true
}

// A transaction-level lock whose work goes on elsewhere: what is written later, after the commit, carries its token.
func ExampleFenceFor() {
	type Report struct {
		ID    int64
		Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
	}
	db, end := database(&Report{})
	defer end()

	err := db.Transaction(func(tx *gorm.DB) error {
		token, err := gormlock.FenceFor(tx, gormlock.Key("report", 1))
		if err != nil {
			return err
		}
		return tx.Clauses(gormlock.Fence(token)).Create(&Report{ID: 1}).Error
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("written by the latest holder")
	// Output: written by the latest holder
}

// All that the transaction writes, to models without a fence too, is written by the latest holder.
func ExampleFenceTx() {
	type Entry struct{ ID, Amount int64 }
	db, end := database(&Entry{})
	defer end()
	first, second := reportToken(db), reportToken(db)

	for _, token := range []fence.Token{first, second} {
		err := db.Transaction(func(tx *gorm.DB) error {
			if err := gormlock.FenceTx(tx, token); err != nil {
				return err
			}
			return tx.Create(&Entry{Amount: 30}).Error
		})
		fmt.Println("refused:", errors.Is(err, gormlock.ErrFenced))
	}
	// Output:
	// refused: true
	// refused: false
}

// A repair by hand, whatever the tokens are.
func ExampleIgnoreFence() {
	type Report struct {
		ID    int64
		Body  string
		Fence int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
	}
	db, end := database(&Report{})
	defer end()

	err := db.Create(&Report{ID: 1}).Error
	fmt.Println("no token:", errors.Is(err, gormlock.ErrFenceMissing))
	if err := db.Clauses(gormlock.IgnoreFence()).Create(&Report{ID: 1}).Error; err != nil {
		fmt.Println(err)
	}
	// Output: no token: true
}
