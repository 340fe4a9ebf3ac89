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
	// gormlock: pages id=1: title changed here and, otherwise, in the row since it was read true
	// title was "Menu", is "Today" here and "Menu of the day" there
}
