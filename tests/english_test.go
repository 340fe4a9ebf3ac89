package tests

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unplain are phrases that have a plainer one: CONTRIBUTING.md shows some.
var unplain = []string{
	"tells whether", "tell whether", // reports whether
	"such that", "thereof", "wherein", "whereby", "hereby", "in vain",
	"know nothing of", "knows nothing of", // do not use
	"has no place in", "have no place in",
	"also where", // even if
}

// TestEnglish_isPlain looks at all that people read: pages, comments and texts.
func TestEnglish_isPlain(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != ".." && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case entry.IsDir(), filepath.Ext(path) != ".go" && filepath.Ext(path) != ".md", entry.Name() == "english_test.go", entry.Name() == "errors_test.go" && filepath.Dir(path) == "../tests":
			return nil
		}
		content, err := os.ReadFile(path)
		files++
		for i, line := range strings.Split(string(content), "\n") {
			for _, phrase := range unplain {
				if strings.Contains(line, phrase) {
					t.Errorf("%s:%d says %q: is there a plainer word?", path, i+1, phrase)
				}
			}
		}
		return err
	})
	if err != nil || files < 500 {
		t.Fatalf("%d files read: %v", files, err)
	}
}
