package api

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestStability_isSaid: whoever depends on a package reads in its documentation whether it stays.
func TestStability_isSaid(t *testing.T) {
	t.Parallel()
	const stays, moves = "stay as they are for v1", "may still change before v1"
	for dir, want := range map[string]string{
		".": stays, "advisory": stays, "fence": stays, "lease": stays, "lockkey": stays, "pgxlock": stays, "sessionlock": stays,
		"inspect": moves, "observe": moves, "observe/otelobserve": moves, "lockkey/compat": moves, "gormlocktest": moves, "hooks": moves, "work": moves, "etag": moves,
	} {
		if about := packageComment(t, filepath.Join("..", "..", dir)); !strings.Contains(about, "# Stability\n") || !strings.Contains(about, want) {
			t.Errorf("the documentation of %s has no section Stability that says %q", dir, want)
		}
	}
}

// docs/stability.md says the same of each.
func TestStability_isOnOnePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/stability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"advisory", "etag", "fence", "gormlocktest", "hooks", "inspect", "lease", "lockkey", "lockkey/compat", "observe", "observe/otelobserve", "pgxlock", "sessionlock", "work"} {
		want := "stable"
		if strings.Contains(packageComment(t, filepath.Join("..", "..", dir)), "may still change before v1") {
			want = "may still change"
		}
		row := regexp.MustCompile("(?m)^\\|.*`" + dir + "`.*$").FindString(string(page))
		if !strings.Contains(row, want) {
			t.Errorf("%s: the row %q does not say %q", dir, row, want)
		}
	}
}

// packageComment is the text before a package clause.
func packageComment(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", dir, err)
	}
	var text strings.Builder
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text.WriteString(parsed.Doc.Text())
	}
	return text.String()
}
