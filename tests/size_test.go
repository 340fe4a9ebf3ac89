package tests

import (
	"bytes"
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
