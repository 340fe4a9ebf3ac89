package main

import (
	"embed"
	"html/template"
	"strconv"
)

//go:embed *.html
var files embed.FS

var (
	editPage  = template.Must(template.ParseFS(files, "frame.html", "edit.html"))
	mergePage = template.Must(template.ParseFS(files, "frame.html", "merge.html"))
)

// page is what a page shows.
type page struct {
	Base  Document // as the page shows it
	Saved bool
	Rows  []row
}

// row is one field as three people see it: as it was when this one began, as this one wants it, and as it is now.
type row struct {
	Name, Label        string
	Base, Mine, Theirs string
}

// Same reports whether there is nothing to choose.
func (r row) Same() bool { return r.Mine == r.Theirs }

// Both reports whether both have changed it, each in another way: the person must choose.
func (r row) Both() bool { return !r.Same() && r.Mine != r.Base && r.Theirs != r.Base }

// TakeMine reports whether only this person has changed it.
func (r row) TakeMine() bool { return r.Theirs == r.Base }

func compare(base, mine, theirs Fields) []row {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []row{
		{"title", "Title", base.Title, mine.Title, theirs.Title},
		{"body", "Text", base.Body, mine.Body, theirs.Body},
		{"reviews", "Reviews", number(base.Reviews), number(mine.Reviews), number(theirs.Reviews)},
	}
}
