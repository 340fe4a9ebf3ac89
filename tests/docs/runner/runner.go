// Package runner runs the snippets of documents, in the test binary that tests/docs makes of them: each with empty tables and
// what the document's prelude sets up. An error that nobody looks at, a panic, and a snippet that does not end are reported
// at their line.
package runner

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

// Document is what the program knows of a document.
type Document struct {
	Path     string
	SQL      string // of its ```sql blocks
	Snippets []Snippet
}

// Snippet is a block, or a call in the text, as a function, between what its prelude does before and after each.
type Snippet struct {
	Line int // of its first line in the document
	Run  func()
}

// Result is what became of a snippet. One is printed for each, as a line of JSON.
type Result struct {
	Document, Error string
	Line            int
}

// Run runs the document that the first argument names, on the schema of the connection string that the second is, and gives
// each snippet the time that the third is. A snippet that takes longer is the last.
func Run(t *testing.T, documents ...Document) {
	path, dsn := flag.Arg(0), flag.Arg(1)
	limit, err := time.ParseDuration(flag.Arg(2))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents {
		if d.Path != path {
			continue
		}
		for _, s := range d.Snippets {
			ended := make(chan *problem, 1)
			go func() { ended <- d.run(t, s, dsn) }()
			select {
			case problem := <-ended:
				report(d, s, problem)
			case <-time.After(limit):
				report(d, s, &problem{line: lineOfAny(), text: fmt.Sprintf("it has not ended after %s", limit)})
				os.Exit(0)
			}
		}
	}
}

func report(d Document, s Snippet, p *problem) {
	result := Result{Document: d.Path, Line: s.Line}
	if p != nil {
		result.Line, result.Error = cmp.Or(p.line, s.Line), p.text
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		os.Exit(1) // nobody reads it
	}
}

// problem is what is wrong with a snippet. Where it is seen it is a panic, so that the snippet goes no further.
type problem struct {
	line int // in the document; 0: not known
	text string
}

func (d Document) run(t *testing.T, s Snippet, dsn string) (found *problem) {
	passed := t.Run(fmt.Sprint(s.Line), func(t *testing.T) {
		here = &World{T: t, DSN: dsn, documents: d.SQL}
		t.Cleanup(here.close)
		found = guard(func() {
			here.open()
			s.Run()
		})
	})
	if !passed && found == nil {
		found = &problem{text: "its test fails"}
	}
	return found
}

// guard calls a function and returns what it panics with.
func guard(do func()) (found *problem) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case *problem:
			found = value
		default:
			found = &problem{lineOfCaller(), fmt.Sprintf("panic: %v", value)}
		}
	}()
	do()
	return nil
}
