// Package census counts the seams of GORM: the places in its source where it opens a session of its own, addresses a
// table without a model, or copies a struct. At each of them a lock, a version, a fence or what a rollback must put back
// can get lost, so each has a test. When GORM adds one, the census fails.
package census

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write "+listed+" anew: name a test for each new line")

const listed = "testdata/places.txt"

// packages are those of GORM that build or run statements.
var packages = []string{".", "callbacks", "migrator"}

// TestEverySeamOfGORMHasATest compares GORM's source with the list.
func TestEverySeamOfGORMHasATest(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, name := range packages {
		places, err := placesIn(sourceOfGORM(t), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range places {
			found[p.String()] = true
		}
	}
	known := readList(t)
	if *update {
		writeList(t, found, known)
		return
	}
	for _, place := range slices.Sorted(maps.Keys(found)) {
		if _, ok := known[place]; !ok {
			t.Errorf("GORM has a new seam:\n\t%s\nSee what a lock, a version, a fence and a rollback become there. Write a test of it, run this one with -update, "+
				"and name the test behind the place in %s", place, listed)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(known)) {
		if !found[place] {
			t.Errorf("GORM has no such seam any more:\n\t%s\nSee what stands in its place, and run with -update", place)
		}
	}
}

// testName is a package of tests and a test in it.
var testName = regexp.MustCompile(`^(\S+) (Test\w+)$`)

// TestEveryTestOfTheListExists looks for the tests that the list names.
func TestEveryTestOfTheListExists(t *testing.T) {
	t.Parallel()
	tests := map[string]string{}
	for place, test := range readList(t) {
		if reason, ok := strings.CutPrefix(test, "none: "); ok && reason != "" {
			continue
		}
		name := testName.FindStringSubmatch(test)
		if name == nil {
			t.Errorf("%s: want the folder and the name of a test, or \"none: \" and the reason, got %q", place, test)
			continue
		}
		source, ok := tests[name[1]]
		if !ok {
			source = sourceOfTests(t, name[1])
			tests[name[1]] = source
		}
		if !strings.Contains(source, "\nfunc "+name[2]+"(") {
			t.Errorf("%s: there is no %s in %s", place, name[2], name[1])
		}
	}
}

// TestTheCensusSeesEachKindOfSeam plants a seam of each kind.
func TestTheCensusSeesEachKindOfSeam(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := `package gorm
func (db *DB) planted(v reflect.Value) { db.Session(&Session{NewDB: true}).Table("t").Create(v); v.Set(v.Elem()); reflect.Append(v, v) }
func byLiteral() *DB { return &DB{} }
func (g g[T]) byValue() (T, error) { var r T; return r, nil }
func quiet(f field) { f.Set(ctx, v, v); db.Where("x") }`
	if err := os.WriteFile(filepath.Join(dir, "planted.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	places, err := placesIn(dir, ".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range places {
		got = append(got, p.kind)
	}
	slices.Sort(got)
	if want := []string{"copy", "copy", "session", "session", "table", "value"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", places, want)
	}
}

func sourceOfGORM(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "gorm.io/gorm")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	return strings.TrimSpace(string(out))
}

// sourceOfTests is the text of all tests in a folder of this module, or of the root's.
func sourceOfTests(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("no tests in %s: %v", folder, err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // it is a file of this repository
		if err != nil {
			t.Fatal(err)
		}
		_, _ = all.Write(text)
	}
	return all.String()
}

// readList is the tests of the places.
func readList(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(listed))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		place, test, _ := strings.Cut(line, " => ")
		if _, twice := known[place]; twice {
			t.Errorf("%s is listed twice", place)
		}
		known[place] = test
	}
	return known
}

const head = "# The seams of GORM, and the test of each: kind, place in GORM's source, expression => folder and test, or \"none: \" and why none is needed.\n"

func writeList(t *testing.T, found map[string]bool, known map[string]string) {
	t.Helper()
	var b strings.Builder
	_, _ = b.WriteString(head)
	for _, place := range slices.Sorted(maps.Keys(found)) {
		_, _ = fmt.Fprintf(&b, "%s => %s\n", place, known[place])
	}
	if err := os.WriteFile(filepath.FromSlash(listed), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
