package gormlock_test

import (
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// A request that comes twice is done once: the second gets what the first did.
func ExampleOnce() {
	type Charge struct{ ID, Amount int64 }
	db, end := database(&Charge{})
	defer end()

	charge := func(idempotencyKey string) (made Charge, err error) {
		err = db.Transaction(func(tx *gorm.DB) error {
			made, err = gormlock.Once(tx, "charge/"+idempotencyKey, func(tx *gorm.DB) (Charge, error) {
				fmt.Println("charging")
				c := Charge{Amount: 30}
				return c, tx.Create(&c).Error
			})
			return err
		})
		return made, err
	}
	for range 2 {
		made, err := charge("9c1d")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("charge", made.ID)
	}
	// Output:
	// charging
	// charge 1
	// charge 1
}

// A key that is used for another request is an error, not the first one's answer.
func ExampleForRequest() {
	db, end := database()
	defer end()

	pay := func(amount int) error {
		return db.Transaction(func(tx *gorm.DB) error {
			_, err := gormlock.Once(tx, "pay/9c1d", func(*gorm.DB) (string, error) { return "paid", nil }, gormlock.ForRequest(amount))
			return err
		})
	}
	fmt.Println("first refused:", errors.Is(pay(30), gormlock.ErrOtherRequest))
	fmt.Println("other refused:", errors.Is(pay(99), gormlock.ErrOtherRequest))
	// Output:
	// first refused: false
	// other refused: true
}

// Keys are kept until they are swept: now and then, some at a time.
func ExampleSweepOnce() {
	db, end := database()
	defer end()

	removed, err := gormlock.SweepOnce(db, 30*24*time.Hour, 1000)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("removed", removed)
	// Output: removed 0
}
