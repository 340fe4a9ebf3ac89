package main

import (
	"go/parser"
	"go/token"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const sample = `package sample

func judge(a, b, c bool) bool {
	if a && // the first
		(b || c) {
		return true
	}
	switch {
	case b && c:
		keep(a)
	}
	return a == b
}
`

func TestMutants(t *testing.T) {
	t.Parallel()
	s, err := sourceOf("sample.go", []byte(sample), 10)
	if err != nil {
		t.Fatal(err)
	}
	var whats []string
	for i, m := range s.mutants {
		whats = append(whats, m.what)
		if m.number != 11+i {
			t.Errorf("%v has the number %d, want %d", m, m.number, 11+i)
		}
	}
	want := []string{
		"always if a && (b || c)", "never if a && (b || c)",
		"without the left of a && (b || c)", "without the right of a && (b || c)",
		"without the left of b || c", "without the right of b || c",
		"not return true",
		"never b && c", "without keep(a)",
		"without the left of b && c", "without the right of b && c",
	}
	if !slices.Equal(whats, want) {
		t.Errorf("mutants %q\nwant %q", whats, want)
	}
	text := string(s.mutated())
	if _, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution); err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
	for _, part := range []string{
		"if (((a) || mutantOn(13)) && // the first",
		"((((b) && !mutantOn(15)) || ((c) && !mutantOn(16)))) || mutantOn(14))) && !mutantOn(12) || mutantOn(11) {",
		"return true != mutantOn(17)",
		"case (((b) || mutantOn(20)) && ((c) || mutantOn(21))) && !mutantOn(18):",
		"if !mutantOn(19) { keep(a) }",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("nowhere is %q:\n%s", part, text)
		}
	}
}

// What equal.txt says is about mutants that there are, and all of them compile.
func TestAll(t *testing.T) {
	t.Chdir("../..")
	sources, err := sourcesOf(packages)
	if err != nil {
		t.Fatal(err)
	}
	var all []mutant
	for _, s := range sources {
		all = append(all, s.mutants...)
	}
	if _, err := equalMutants(all); err != nil {
		t.Error(err)
	}
	overlay, err := overlayOf(sources, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./internal/...")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
