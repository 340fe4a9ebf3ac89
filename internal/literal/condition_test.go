package literal

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

type status string

type enum string

func (e enum) Value() (driver.Value, error) { return "is " + string(e), nil }

type named int

func (named) String() string { return "one" }

// A text has its constants in it, and the parameters that are left are numbered on.
func TestWritten(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		text      string
		arguments []any
		want      string
		left      []any
	}{
		{`WHERE state = $1`, []any{"ready"}, `WHERE state = 'ready'`, nil},
		{`WHERE state = $1`, []any{"it's"}, `WHERE state = 'it''s'`, nil},
		{`WHERE state = $1`, []any{status("ready")}, `WHERE state = 'ready'`, nil},
		{`WHERE state = $1`, []any{enum("ready")}, `WHERE state = 'is ready'`, nil},
		{`WHERE n = $1 AND m=$2 AND NOT $3`, []any{int8(-7), uint64(7), false}, `WHERE n = (-7) AND m=7 AND NOT false`, nil},
		{`WHERE state IN ($1,$2) AND run_at < $3 AND n = $4`, []any{"a", "b", now, 4}, `WHERE state IN ('a','b') AND run_at < $1 AND n = 4`, []any{now}},
		{`WHERE '$1' = $1 AND "$1" = $2 -- $1`, []any{"a", "b"}, `WHERE '$1' = 'a' AND "$1" = 'b' -- $1`, nil},
		{`WHERE $$ $1 $$ = $1`, []any{"a"}, `WHERE $$ $1 $$ = 'a'`, nil},
		// these stay as they are
		{`WHERE n = $1`, []any{now}, "", nil},
		{`WHERE n = $1`, []any{nil}, "", nil},
		{`WHERE n = $1`, []any{named(1)}, "", nil},
		{`WHERE n = $1`, []any{1.5}, "", nil},
		{`WHERE n = $1`, []any{[]byte("a")}, "", nil},
		{`WHERE n = $1`, []any{`a\b`}, "", nil},
		{`WHERE n = $1`, []any{"a\x00b"}, "", nil},
		{`WHERE n = $1`, []any{"a\xffb"}, "", nil},
		{`WHERE n = $1`, []any{strings.Repeat("a", longest+1)}, "", nil},
		{`WHERE n = '\' AND m = $1`, []any{"a"}, "", nil}, // or is $1 a part of the string?
		{`WHERE n = $1 AND m = $1`, []any{"a"}, "", nil},
		{`WHERE n = $2`, []any{"a"}, "", nil},
		{`WHERE n = $1`, []any{"a", "b"}, "", nil},
		{`WHERE n = 'a`, []any{"a"}, "", nil},
	} {
		var all Conditions
		for range 2 { // seen before or not
			got, stays, ok := all.of(c.text).written(c.text, c.arguments, 0)
			if got != c.want || ok != (c.want != "") {
				t.Errorf("%s with %v is %q", c.text, c.arguments, got)
			}
			var left []any
			for i, stay := range stays {
				if ok && stay {
					left = append(left, c.arguments[i])
				}
			}
			if !slices.Equal(left, c.left) {
				t.Errorf("%s with %v leaves %v", c.text, c.arguments, left)
			}
		}
	}
	var all Conditions
	if got, _, _ := all.of(`x = $3 AND y < $4`).written(`x = $3 AND y < $4`, []any{"a", 1.5}, 2); got != `x = 'a' AND y < $3` {
		t.Errorf("numbers that do not begin with 1: %s", got)
	}
}

// A place with many values is a parameter, and its condition has few texts; the constants beside it stay in the text.
func TestWritten_fewTexts(t *testing.T) {
	t.Parallel()
	const text = `WHERE tenant = $1 AND state = $2`
	var all Conditions
	texts := map[string]bool{}
	var last string
	for tenant := range 10000 {
		last = text
		if got, _, ok := all.of(text).written(text, []any{tenant, "ready"}, 0); ok {
			last = got
		}
		texts[last] = true
	}
	if len(texts) > mostTexts || last != `WHERE tenant = $1 AND state = 'ready'` {
		t.Errorf("%d texts, the last is %s", len(texts), last)
	}
}

// Values of several places, each of few, do not multiply.
func TestWritten_fewCombinations(t *testing.T) {
	t.Parallel()
	const text = `WHERE a = $1 AND b = $2 AND c = $3 AND d = $4`
	var all Conditions
	texts := map[string]bool{}
	for i := range 4096 {
		arguments := []any{i % 8, i / 8 % 8, i / 64 % 8, i / 512 % 8}
		if got, _, ok := all.of(text).written(text, arguments, 0); ok {
			texts[got] = true
		}
	}
	if len(texts) > 5*mostTexts {
		t.Errorf("%d texts", len(texts))
	}
}

// Conditions that a program makes anew each time are not remembered without end.
func TestConditions_areBounded(t *testing.T) {
	t.Parallel()
	var all Conditions
	for i := range 2 * mostConditions {
		all.of(fmt.Sprintf("WHERE a%d = $1", i))
	}
	n := 0
	all.known.Range(func(any, any) bool { n++; return true })
	if n != mostConditions {
		t.Errorf("%d are remembered", n)
	}
}
