package literal

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm/schema"
)

type status string

type enum string

func (e enum) Value() (driver.Value, error) { return "is " + string(e), nil }

type named int

func (named) String() string { return "one" }

// A text contains its constants, and the remaining parameters are numbered anew.
// row is what the conditions are about.
type row struct {
	N, M, Tenant  int
	A, B, C, D, X int
	Done          bool
	State         string
	Mood          string `gorm:"type:mood not null"`
	CreatedAt     time.Time
}

var rowModel = func() *schema.Schema {
	s, err := schema.Parse(&row{}, &sync.Map{}, schema.NamingStrategy{})
	if err != nil {
		panic(err)
	}
	return s
}()

func about(text string) question { return question{text, rowModel, "rows"} }

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
		{`WHERE n = $1 AND m=$2 AND done <> $3`, []any{int8(-7), uint64(7), false}, `WHERE n = (-7) AND m=7 AND done <> false`, nil},
		{`WHERE "n" IN ($1,$2) AND rows.M NOT IN ($3)`, []any{1, 2, 3}, `WHERE "n" IN (1,2) AND rows.M NOT IN (3)`, nil},
		{`WHERE (n >= $1 OR "rows"."m" < $2)`, []any{1, 2}, `WHERE (n >= 1 OR "rows"."m" < 2)`, nil},
		{`WHERE n = $1 AND state = $2`, []any{"1", "a"}, `WHERE n = '1' AND state = 'a'`, nil},
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
		// a number is written only if a column of numbers is compared with nothing else
		{`WHERE data->'n' = $1`, []any{5}, "", nil},
		{`WHERE data->n = $1`, []any{5}, "", nil},
		{`WHERE data @> $1`, []any{5}, "", nil},
		{`WHERE n::text = $1`, []any{5}, "", nil},
		{`WHERE abs(n) = $1`, []any{5}, "", nil},
		{`WHERE n + m = $1`, []any{5}, "", nil},
		{`WHERE n = $1 + m`, []any{5}, "", nil},
		{`WHERE n = $1::int`, []any{5}, "", nil},
		{`WHERE substring(state, $1) = 'a'`, []any{5}, "", nil},
		{`WHERE state = $1`, []any{5}, "", nil},
		{`WHERE other = $1`, []any{5}, "", nil},
		{`WHERE n = $1`, []any{true}, "", nil},
		{`WHERE done = $1`, []any{1}, "", nil},
		{`WHERE n LIKE $1`, []any{5}, "", nil},
		{`WHERE n BETWEEN $1 AND $2`, []any{1, 2}, "", nil},
		{`WHERE n = ANY($1)`, []any{5}, "", nil},
		{`WHERE n = -$1`, []any{5}, "", nil},
		{`WHERE NOT $1`, []any{true}, "", nil},
		{`WHERE others.n = $1`, []any{5}, "", nil},
		{`WHERE EXISTS (SELECT FROM others o WHERE n = $1)`, []any{5}, "", nil},
		{`WHERE id IN (SELECT id FROM others WHERE n IN ($1))`, []any{5}, "", nil},
		// a text that the server may read as a time is written only if it is one of its column
		{`WHERE due < $1`, []any{"now"}, "", nil},
		{`WHERE due < $1`, []any{" Today"}, "", nil},
		{`WHERE due < $1`, []any{"2026-01-01 00:00"}, "", nil},
		{`WHERE created_at < $1`, []any{"tomorrow"}, "", nil},
		{`WHERE lower(state) = $1`, []any{"now"}, "", nil},
		{`WHERE lower(state) = $1`, []any{"ready"}, `WHERE lower(state) = 'ready'`, nil},
		{`WHERE lower(state) = $1`, []any{"unknown"}, `WHERE lower(state) = 'unknown'`, nil},
		{`WHERE state IN ($1,$2)`, []any{"known", "level 2"}, `WHERE state IN ('known','level 2')`, nil},
		{`WHERE mood IN ($1,$2)`, []any{"v2", "v13"}, `WHERE mood IN ('v2','v13')`, nil},
		{`WHERE state = $1`, []any{"Now()"}, "", nil},
		{`WHERE state = $1`, []any{"(,now]"}, "", nil},
		{`WHERE state = $1`, []any{"2026-03-01 13:00"}, "", nil},
		{`WHERE created_at = $1`, []any{"known"}, `WHERE created_at = 'known'`, nil},
		{`WHERE n = 'a`, []any{"a"}, "", nil},
	} {
		var all Conditions
		for range 2 { // whether or not it was seen before
			got, stays, ok := all.of(about(c.text)).written(c.text, c.arguments, 0)
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
	if got, _, _ := all.of(about(`x = $3 AND y < $4`)).written(`x = $3 AND y < $4`, []any{"a", 1.5}, 2); got != `x = 'a' AND y < $3` {
		t.Errorf("numbers that do not begin with 1: %s", got)
	}
}

// A place with many values stays a parameter, so its condition has few texts. The constants beside it are written out.
func TestWritten_fewTexts(t *testing.T) {
	t.Parallel()
	const text = `WHERE tenant = $1 AND state = $2`
	var all Conditions
	texts := map[string]bool{}
	var last string
	for tenant := range 10000 {
		last = text
		if got, _, ok := all.of(about(text)).written(text, []any{tenant, "ready"}, 0); ok {
			last = got
		}
		texts[last] = true
	}
	if len(texts) > mostTexts || last != `WHERE tenant = $1 AND state = 'ready'` {
		t.Errorf("%d texts, the last is %s", len(texts), last)
	}
}

// If several places have few values each, the texts do not multiply.
func TestWritten_fewCombinations(t *testing.T) {
	t.Parallel()
	const text = `WHERE a = $1 AND b = $2 AND c = $3 AND d = $4`
	var all Conditions
	texts := map[string]bool{}
	for i := range 4096 {
		arguments := []any{i % 8, i / 8 % 8, i / 64 % 8, i / 512 % 8}
		if got, _, ok := all.of(about(text)).written(text, arguments, 0); ok {
			texts[got] = true
		}
	}
	if len(texts) > 5*mostTexts {
		t.Errorf("%d texts", len(texts))
	}
}

// Conditions that a program makes anew each time do not fill the memory.
func TestConditions_areBounded(t *testing.T) {
	t.Parallel()
	var all Conditions
	for i := range 2 * mostConditions {
		all.of(about(fmt.Sprintf("WHERE a%d = $1", i)))
	}
	n := 0
	all.known.Range(func(any, any) bool { n++; return true })
	if n != mostConditions {
		t.Errorf("%d are remembered", n)
	}
}
