package gormlock_test

import (
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// Two requests have read the same account. The second write would take back the first: it is refused.
func Example() {
	type Account struct {
		ID, Balance int64
		Version     int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	db, end := database(&Account{})
	defer end()

	mine := Account{ID: 1, Balance: 100}
	if err := db.Create(&mine).Error; err != nil {
		fmt.Println(err)
		return
	}
	theirs := mine
	if err := db.Model(&theirs).Update("balance", 70).Error; err != nil {
		fmt.Println(err)
		return
	}
	mine.Balance = 90
	if err := db.Save(&mine).Error; errors.Is(err, gormlock.ErrStale) {
		fmt.Println("read it again: somebody has changed it")
	}
	// Output: read it again: somebody has changed it
}

// The error of a stale write names the row, the version it was read at, and the one it has now.
func ExampleStaleError() {
	type Account struct {
		ID, Balance int64
		Version     int64 `gorm:"default:1" gormlock:"version"`
	}
	db, end := database(&Account{ID: 1, Version: 7})
	defer end()

	err := db.Model(&Account{ID: 1, Version: 3}).Update("balance", 90).Error
	var stale *gormlock.StaleError
	if errors.As(err, &stale) {
		fmt.Println(stale.Table, stale.PrimaryKey["id"], "was read at", stale.Expected, "and is at", stale.Actual)
	}
	// Output: accounts 1 was read at 3 and is at 7
}

// The version comes with a form or a request, and the struct was never read.
func ExampleExpectVersion() {
	type Account struct {
		ID, Balance int64
		Version     int64 `gorm:"default:1" gormlock:"version"`
	}
	db, end := database(&Account{ID: 1, Version: 7})
	defer end()

	form := map[string]any{"balance": 90}
	for _, version := range []int64{6, 7} {
		err := db.Clauses(gormlock.ExpectVersion(version)).Model(&Account{ID: 1}).Updates(form).Error
		fmt.Println(version, "is stale:", errors.Is(err, gormlock.ErrStale))
	}
	// Output:
	// 6 is stale: true
	// 7 is stale: false
}

// A table without a version: the write compares the columns that it depends on.
func ExampleIfUnchanged() {
	type Seat struct {
		ID    int64
		Guest string
	}
	free := Seat{ID: 12}
	db, end := database(&free)
	defer end()

	for _, guest := range []string{"Ann", "Bob"} {
		err := db.Model(&Seat{ID: 12}).Clauses(gormlock.IfUnchanged(&free, "guest")).Update("guest", guest).Error
		if errors.Is(err, gormlock.ErrStale) {
			fmt.Println("too late for", guest)
		}
	}
	// Output: too late for Bob
}

// What must be written, whoever has changed the row: it is not compared, and others notice the change.
func ExampleIgnoreVersion() {
	type Account struct {
		ID      int64
		Closed  bool
		Version int64 `gorm:"default:1" gormlock:"version"`
	}
	db, end := database(&Account{ID: 1})
	defer end()

	account := Account{ID: 1}
	err := db.Clauses(gormlock.IgnoreVersion()).Model(&account).Update("closed", true).Error
	if err == nil {
		err = db.First(&account).Error
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("closed, at version", account.Version)
	// Output: closed, at version 2
}

// What others need not know of leaves the version as it is, and their writes are not refused.
func ExamplePreserveVersion() {
	type Page struct {
		ID, Visits int64
		Version    int64 `gorm:"default:1" gormlock:"version"`
	}
	page := Page{ID: 1}
	db, end := database(&page)
	defer end()

	if err := db.Clauses(gormlock.PreserveVersion()).Model(&page).Update("visits", 1).Error; err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("visits:", page.Visits, "version:", page.Version)
	// Output: visits: 1 version: 1
}

// The lines of an order belong to it: who changes them moves its version.
func ExampleTouch() {
	type Order struct {
		ID      int64
		Version int64 `gorm:"default:1" gormlock:"version"`
	}
	type Line struct{ ID, OrderID, Amount int64 }
	order := Order{ID: 1}
	db, end := database(&order, &Line{})
	defer end()

	err := db.Transaction(func(tx *gorm.DB) error {
		if err := gormlock.Touch(tx, &order); err != nil {
			return err // ErrStale: somebody else has changed the order
		}
		return tx.Create(&Line{OrderID: order.ID, Amount: 3}).Error
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the order is at version", order.Version)
	// Output: the order is at version 2
}

// What is written depends on a row that is only read: it stays as it is until the commit.
func ExampleVerifyVersion() {
	type Limit struct {
		ID, Amount int64
		Version    int64 `gorm:"default:1" gormlock:"version"`
	}
	type Payment struct{ ID, Amount int64 }
	limit := Limit{ID: 1, Amount: 100}
	db, end := database(&limit, &Payment{})
	defer end()

	err := db.Transaction(func(tx *gorm.DB) error {
		if err := gormlock.VerifyVersion(tx, &limit); err != nil {
			return err // ErrStale: the limit is another one now
		}
		return tx.Create(&Payment{Amount: limit.Amount}).Error
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("paid, within the limit")
	// Output: paid, within the limit
}

// psql and scripts do not move versions. With the trigger their writes move them too.
func ExampleVersionTrigger() {
	type Account struct {
		ID, Balance int64
		Version     int64 `gorm:"default:1" gormlock:"version"`
	}
	db, end := database(&Account{})
	defer end()
	account := Account{ID: 1}
	err := errors.Join(
		db.Exec(gormlock.VersionTrigger("accounts", "version")).Error, // in a migration
		db.Create(&account).Error,
		db.Exec("UPDATE accounts SET balance = 5").Error, // by a script
	)
	if err != nil {
		fmt.Println(err)
		return
	}

	err = db.Model(&account).Update("balance", 90).Error
	fmt.Println("stale:", errors.Is(err, gormlock.ErrStale))
	// Output: stale: true
}
