package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestTour_everythingComesOutRight(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := tour(t.Context(), &page{out: &out}, pgtest.DSN(t), chapters); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, c := range chapters {
		if !strings.Contains(out.String(), c.title) {
			t.Errorf("no chapter %q", c.title)
		}
	}
	for _, name := range features(t) {
		if !strings.Contains(out.String(), name) {
			t.Errorf("nothing about gormlock.%s", name)
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("colour where there is no terminal")
	}
	if strings.Contains(out.String(), "NOT OK") || !strings.Contains(out.String(), "Where to read on") {
		t.Error(out.String())
	}
}

// Without ALL a newcomer sees three chapters, and is told how to see the others.
func TestTour_opensWithThree(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := tour(t.Context(), &page{out: &out}, pgtest.DSN(t), chapters[:opening]); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"is stale, the row is at 2", "0 of them twice", "is superseded", "make demo ALL=1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines > 3*24 {
		t.Errorf("it has %d lines, more than three screens", lines)
	}
}

// features are the exported functions of gormlock, without those that make an option.
func features(t *testing.T) (names []string) {
	t.Helper()
	api, err := os.ReadFile("../../tests/api/gormlock.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, function := range regexp.MustCompile(`(?m)^func (\w+).* (\S+)$`).FindAllStringSubmatch(string(api), -1) {
		if !strings.HasSuffix(function[2], "Option") {
			names = append(names, function[1])
		}
	}
	if len(names) == 0 {
		t.Fatal("no functions")
	}
	return names
}

func TestTour_saysWhatIsNotRight(t *testing.T) {
	t.Parallel()
	broken := errors.New("the chapter is broken")
	for name, c := range map[string]struct {
		run  func(context.CancelFunc) func(*stage) error
		want string
	}{
		"an outcome": {
			func(context.CancelFunc) func(*stage) error {
				return func(s *stage) error { s.check(1 > 2, "one is more than two"); return nil }
			}, "not right: 1 of",
		},
		"a chapter that cannot go on": {
			func(context.CancelFunc) func(*stage) error { return func(*stage) error { return broken } },
			"chapter 1, broken: the chapter is broken",
		},
		"a lock that is left": {
			func(context.CancelFunc) func(*stage) error {
				return func(s *stage) error {
					tx := s.db.Begin()
					t.Cleanup(func() { tx.Rollback() })
					return try(s.key("left"))(tx)
				}
			}, "not right: 1 of",
		},
		"a reader who stops it": {
			func(stop context.CancelFunc) func(*stage) error {
				return func(s *stage) error { stop(); return create(s) }
			}, "context canceled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var out bytes.Buffer
			var schema string
			err := tour(ctx, &page{out: &out}, pgtest.DSN(t), []chapter{{"broken", func(s *stage) error {
				schema = s.name
				return c.run(stop)(s)
			}}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			var left bool
			if err := pgtest.Conn(t).QueryRow(t.Context(), "select to_regnamespace($1) is not null", schema).Scan(&left); err != nil || left {
				t.Errorf("the schema %s is left: %t, %v", schema, left, err)
			}
		})
	}
}

func TestPage_colourIsForTerminals(t *testing.T) {
	t.Parallel()
	pipe, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer other.Close()
	if colourful(other) {
		t.Error("colour in a pipe")
	}
	var plain, painted bytes.Buffer
	(&page{out: &plain}).check(true, "it is")
	(&page{out: &painted, colour: true}).check(true, "it is")
	if plain.String() != "   ok  it is\n" || painted.String() != "   \x1b[32mok\x1b[0m  it is\n" {
		t.Errorf("%q, %q", plain.String(), painted.String())
	}
}
