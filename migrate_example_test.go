package gormlock_test

import (
	"fmt"

	"github.com/gormlock/gormlock"
)

// All processes of a deployment migrate when they start: one does, the others wait, and it is all or nothing.
func ExampleAutoMigrate() {
	type Account struct {
		ID      int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	db, end := database()
	defer end()

	if err := gormlock.AutoMigrate(db, &Account{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("accounts:", db.Migrator().HasTable("accounts"))
	// Output: accounts: true
}

// The tables of gormlock itself: of tokens, leases, schedules, Once and the names of keys.
func ExampleMigrateAll() {
	db, end := database()
	defer end()

	if err := gormlock.MigrateAll(db); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("fencing tokens:", db.Migrator().HasTable("gormlock_fence"))
	// Output: fencing tokens: true
}

// A wrong tag is found when the program starts, not when the model is first used.
func ExampleCheck() {
	type Account struct {
		ID      int64
		Version string `gormlock:"version"`
	}
	db, end := database()
	defer end()

	if err := gormlock.Check(db, &Account{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// gormlock: 1 of 1 models cannot be used as they are:
	// 	Account: Version: a version field must be an integer, a pointer to one, a sql.Null integer or a time.Time, not string
}
