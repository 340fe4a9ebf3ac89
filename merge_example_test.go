package gormlock_test

import (
	"errors"
	"fmt"

	"github.com/gormlock/gormlock"
)

// Ann and Bob edit one page at the same time. Both edits are kept if they are of different columns. Carl changes a column that
// Ann has changed: the error says what each of them made of it.
func ExampleSaveMerged() {
	type Page struct {
		ID          int64
		Title, Body string
		Version     int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	base := Page{Title: "Menu", Body: "soup"}
	db, end := database(&base)
	defer end()
	ann, bob, carl := base, base, base // what each form began with
	ann.Title, bob.Body, carl.Title = "Menu of the day", "soup, fish", "Today"

	if err := errors.Join(gormlock.SaveMerged(db, &ann, &base), gormlock.SaveMerged(db, &bob, &base)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(bob.Title, "/", bob.Body)
	var conflict *gormlock.ConflictError
	if errors.As(gormlock.SaveMerged(db, &carl, &base), &conflict) {
		c := conflict.Columns[0]
		fmt.Printf("%s was %q, is %q here and %q there\n", c.Column, c.Base, c.Mine, c.Theirs)
	}
	// Output:
	// Menu of the day / soup, fish
	// title was "Menu", is "Today" here and "Menu of the day" there
}

// An order and its lines have one version. Bob read the order before Ann added a line, so his line is refused.
func Example_root() {
	type Order struct {
		ID      int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	type Line struct {
		ID, Qty, OrderID int64
		Order            *Order `gormlock:"root"`
	}
	db, end := database(&Order{}, &Line{})
	defer end()
	var order Order
	if err := db.Create(&order).Error; err != nil {
		fmt.Println(err)
		return
	}

	ann, bob := order, order // both have read the order, and then its lines
	if err := db.Create(&Line{Qty: 60, Order: &ann}).Error; err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("Ann's version:", ann.Version)
	err := db.Create(&Line{Qty: 60, Order: &bob}).Error
	fmt.Println("Bob is refused:", errors.Is(err, gormlock.ErrStale))
	// Output:
	// Ann's version: 2
	// Bob is refused: true
}
