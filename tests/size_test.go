package tests

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	// longest is how many lines a file may have that is read rather than run through.
	longest = 350

	// rootFiles and rootLines bound the root, which holds doors and no machinery. Tests do not count.
	rootFiles = 16
	rootLines = 1500

	// mostFields is how many fields a type may have in the rooms that a versioned write passes through.
	mostFields = 12
)

// linesOf counts the lines of a directory's Go files, tests left out, by path.
func linesOf(t *testing.T, root string, deep bool) map[string]int {
	t.Helper()
	lines := map[string]int{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (!deep || strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case entry.IsDir(), filepath.Ext(path) != ".go", strings.HasSuffix(path, "_test.go"):
			return nil
		}
		content, err := os.ReadFile(path)
		lines[path] = bytes.Count(content, []byte("\n"))
		return err
	})
	if err != nil || len(lines) == 0 {
		t.Fatalf("%d Go files read: %v", len(lines), err)
	}
	return lines
}

func TestFiles_areShort(t *testing.T) {
	t.Parallel()
	for path, n := range linesOf(t, "..", true) {
		if n > longest {
			t.Errorf("%s has %d lines, more than %d: split it by what its parts are about", path, n, longest)
		}
	}
}

func TestRoot_isSmall(t *testing.T) {
	t.Parallel()
	files, total := linesOf(t, "..", false), 0
	for _, n := range files {
		total += n
	}
	if len(files) > rootFiles || total > rootLines {
		t.Errorf("the root has %d files with %d lines, more than %d or %d: what is no door belongs into internal", len(files), total, rootFiles, rootLines)
	}
}

func TestTypes_areSmall(t *testing.T) {
	t.Parallel()
	for _, room := range []string{"aggregate", "belongs", "children", "column", "guard", "journal", "memory", "model", "reading", "whereabouts"} {
		for path := range linesOf(t, "../internal/"+room, true) {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				named, is := n.(*ast.TypeSpec)
				if !is {
					return true
				}
				if of, is := named.Type.(*ast.StructType); is && of.Fields.NumFields() > mostFields {
					t.Errorf("%s: %s has %d fields, more than %d: group those that belong together", path, named.Name, of.Fields.NumFields(), mostFields)
				}
				return true
			})
		}
	}
}
