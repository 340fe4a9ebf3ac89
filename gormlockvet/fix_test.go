package gormlockvet_test

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/gormlock/gormlock/gormlockvet"
)

// The programs still compile when all suggested changes are made and, as -fix does then, formatted.
func TestFixesCompile(t *testing.T) {
	t.Parallel()
	dir := exampleModule(t)
	for _, programs := range []string{"planted", "dropped", "outer"} {
		if err := os.CopyFS(filepath.Join(dir, programs), os.DirFS(filepath.Join(testdata(t), programs))); err != nil {
			t.Fatal(err)
		}
	}
	fixes := fixesOf(t, dir)
	for path, edits := range fixes {
		text := []byte(readFile(t, path))
		slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
		for i, e := range edits {
			if i == 0 || e.to <= edits[i-1].from { // else it is the same change once more
				text = slices.Concat(text[:e.from], e.text, text[e.to:])
			}
		}
		formatted, err := format.Source(text)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		writeFile(t, path, string(formatted))
	}
	build := exec.CommandContext(t.Context(), "go", "build", "./...")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("what the changes make does not compile: %v: %s", err, out)
	}
	const atLeast = 8
	if len(fixes) < atLeast {
		t.Errorf("only %d files are changed", len(fixes))
	}
}

type edit struct {
	from, to int
	text     []byte
}

// fixesOf returns the changes that all findings suggest, by files.
func fixesOf(t *testing.T, dir string) map[string][]edit {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax | packages.NeedModule, Dir: dir, Context: t.Context()}, "./...")
	if err != nil || packages.PrintErrors(loaded) > 0 {
		t.Fatalf("cannot load: %v", err)
	}
	graph, err := checker.Analyze(gormlockvet.Analyzers(), loaded, nil)
	if err != nil {
		t.Fatal(err)
	}
	fixes := map[string][]edit{}
	for _, root := range graph.Roots {
		if root.Err != nil {
			t.Fatal(root.Err)
		}
		for _, e := range editsOf(root.Diagnostics) {
			file := root.Package.Fset.File(e.Pos)
			fixes[file.Name()] = append(fixes[file.Name()], edit{file.Offset(e.Pos), file.Offset(e.End), e.NewText})
		}
	}
	return fixes
}

func editsOf(diagnostics []analysis.Diagnostic) (edits []analysis.TextEdit) {
	for _, d := range diagnostics {
		for _, fix := range d.SuggestedFixes {
			edits = append(edits, fix.TextEdits...)
		}
	}
	return edits
}
