package gormlockvet_test

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/gormlock/gormlock/gormlockvet"
)

// finding returns the analyzer of a finding.
func finding(t *testing.T, name string) *analysis.Analyzer {
	t.Helper()
	for _, a := range gormlockvet.Analyzers() {
		if nameOf(a) == name {
			return a
		}
	}
	t.Fatalf("there is no finding %s", name)
	return nil
}

func testdata(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Each finding is told of where a comment in its directory wants it, and nowhere else. The changes that findings suggest
// make of the programs below fixes what the golden files beside them hold.
func TestFindings(t *testing.T) {
	t.Parallel()
	patterns := []string{"./fixes/..."}
	for _, a := range gormlockvet.Analyzers() {
		patterns = append(patterns, "./"+nameOf(a)+"/...")
	}
	looked := map[string]bool{}
	for _, result := range analysistest.RunWithSuggestedFixes(t, testdata(t), ofDirectory(t), patterns...) {
		if result.Err != nil {
			t.Error(result.Err)
		}
		looked[directory(result.Pass.Pkg.Path())] = true
	}
	for _, a := range gormlockvet.Analyzers() {
		if !looked[nameOf(a)] {
			t.Errorf("no program was looked at for %s", nameOf(a))
		}
	}
	for _, name := range []string{"dropped", "outer", "silenced", "tags"} {
		if !looked["fixes/"+name] {
			t.Errorf("no program was looked at for the changes of %s", name)
		}
	}
}

// ofDirectory runs in each package the finding that its directory is named for: all programs are loaded once, with what
// they import, which takes far longer than to look at them. The changes are those of the programs below fixes.
func ofDirectory(t *testing.T) *analysis.Analyzer {
	t.Helper()
	return &analysis.Analyzer{
		Name:     "directory",
		Doc:      "run the finding that the directory is named for",
		Requires: finding(t, "silenced").Requires, // all others: they say which comments they needed
		Run: func(pass *analysis.Pass) (any, error) {
			name, fixes := strings.CutPrefix(directory(pass.Pkg.Path()), "fixes/")
			own := *pass
			own.Analyzer = finding(t, name)
			own.Report = func(d analysis.Diagnostic) {
				if !fixes {
					d.SuggestedFixes = nil
				}
				pass.Report(d)
			}
			return own.Analyzer.Run(&own)
		},
	}
}

// directory returns the directory of testdata that a package is in, and the next one below fixes.
func directory(pkg string) string {
	parts := strings.Split(strings.TrimPrefix(pkg, "example.com/shop/"), "/")
	if parts[0] == "fixes" {
		return "fixes/" + parts[1]
	}
	return parts[0]
}

func nameOf(a *analysis.Analyzer) string { return strings.TrimPrefix(a.Name, "gormlock") }
