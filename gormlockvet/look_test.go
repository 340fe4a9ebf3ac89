package gormlockvet_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"iter"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/gormlock/gormlock/gormlockvet"
)

// finds is one finding at one line.
type finds struct {
	file string
	line int
	name string
}

func (f finds) String() string { return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.name) }

func sorted(m map[finds]string) []finds {
	return slices.SortedFunc(maps.Keys(m), func(a, b finds) int { return strings.Compare(a.String(), b.String()) })
}

var misuse = regexp.MustCompile(`// misuse: ([a-z ]+)`)

// analyze runs all findings over programs.
func analyze(t *testing.T, dir string, patterns ...string) *checker.Graph {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax | packages.NeedModule, Dir: dir, Context: t.Context()}, patterns...)
	if err != nil || packages.PrintErrors(loaded) > 0 || len(loaded) == 0 {
		t.Fatalf("cannot load %s: %v", patterns, err)
	}
	graph, err := checker.Analyze(gormlockvet.Analyzers(), loaded, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range graph.Roots {
		if root.Err != nil {
			t.Fatal(root.Err)
		}
	}
	return graph
}

// look returns the misuses that comments say are in programs, and what was found there.
func look(t *testing.T, dir string, patterns ...string) (planted, found map[finds]string) {
	t.Helper()
	planted, found = map[finds]string{}, map[finds]string{}
	graph := analyze(t, dir, patterns...)
	at := func(pos token.Position, name string) finds {
		path, err := filepath.Rel(dir, pos.Filename)
		if err != nil {
			t.Fatal(err)
		}
		return finds{filepath.ToSlash(path), pos.Line, name}
	}
	for _, root := range graph.Roots {
		for comment := range comments(root.Package.Syntax) {
			if names := misuse.FindStringSubmatch(comment.Text); names != nil {
				for _, name := range strings.Fields(names[1]) {
					planted[at(root.Package.Fset.Position(comment.Pos()), name)] = comment.Text
				}
			}
		}
		for _, d := range root.Diagnostics {
			name, text, _ := strings.Cut(d.Message, ": ")
			f := at(root.Package.Fset.Position(d.Pos), name)
			if found[f] == "" || text < found[f] {
				found[f] = text
			}
		}
	}
	return planted, found
}

func comments(files []*ast.File) iter.Seq[*ast.Comment] {
	return func(yield func(*ast.Comment) bool) {
		for _, file := range files {
			for _, group := range file.Comments {
				for _, comment := range group.List {
					if !yield(comment) {
						return
					}
				}
			}
		}
	}
}
