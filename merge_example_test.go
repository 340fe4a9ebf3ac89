package gormlock_test

import (
	"errors"
	"fmt"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// Two people have one page open. Where they changed different columns both edits are kept; where they changed one column, the
// second learns what the first made of it.
func ExampleSaveMerged() {
	type Page struct {
		ID      int64
		Title   string
		Body    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	t := pgtest.NewExample() // a PostgreSQL, and an empty schema in it
	defer t.End()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	base := Page{Title: "Menu", Body: "soup"}
	if err := errors.Join(db.AutoMigrate(&Page{}), db.Create(&base).Error); err != nil {
		fmt.Println(err)
		return
	}
	ann, bob := base, base // what each form began with

	ann.Title = "Menu of the day"
	fmt.Println(gormlock.SaveMerged(db, &ann, &base))
	bob.Body = "soup, fish"
	fmt.Println(gormlock.SaveMerged(db, &bob, &base))
	fmt.Println(bob.Title, "/", bob.Body, bob.Version)

	carl := base
	carl.Title, carl.Body = "Today", "soup, fish"
	err := gormlock.SaveMerged(db, &carl, &base)
	fmt.Println(err, errors.Is(err, gormlock.ErrStale))
	var conflict *gormlock.ConflictError
	if errors.As(err, &conflict) {
		for _, c := range conflict.Columns {
			fmt.Printf("%s was %q, is %q here and %q there\n", c.Column, c.Base, c.Mine, c.Theirs)
		}
	}
	// Output:
	// <nil>
	// <nil>
	// Menu of the day / soup, fish 3
	// gormlock: pages id=1: title was changed here, and to another value in the row true
	// title was "Menu", is "Today" here and "Menu of the day" there
}

// An order and its lines have one version: whoever adds a line on an old reading of the order is refused.
func Example_root() {
	type Order struct {
		ID      int64
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	type Line struct {
		ID, Qty, OrderID int64
		Order            *Order `gormlock:"root"`
	}
	t := pgtest.NewExample() // a PostgreSQL, and an empty schema in it
	defer t.End()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	order := Order{}
	if err := errors.Join(db.AutoMigrate(&Order{}, &Line{}), db.Create(&order).Error); err != nil {
		fmt.Println(err)
		return
	}
	ann, bob := order, order // both have read the order, and then its lines
	fmt.Println(db.Create(&Line{Qty: 60, OrderID: ann.ID, Order: &ann}).Error, ann.Version)
	fmt.Println(db.Create(&Line{Qty: 60, OrderID: bob.ID, Order: &bob}).Error)
	// Output:
	// <nil> 2
	// gormlock: orders id=1: version 1 is stale, the row is at 2
}
