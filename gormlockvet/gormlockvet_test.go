package gormlockvet_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/gormlock/gormlock/gormlockvet"
)

// finding returns the analyzer of a finding.
func finding(t *testing.T, name string) *analysis.Analyzer {
	t.Helper()
	for _, a := range gormlockvet.Analyzers() {
		if a.Name == "gormlock"+name {
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

// Each finding is told of where a comment wants it, and nowhere else.
func TestFindings(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"around", "dropped", "held", "ignored", "old", "outer", "retried", "silenced", "tags", "uninstalled"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			analysistest.Run(t, testdata(t), finding(t, name), "./"+name+"/...")
		})
	}
}

// So are those of handlers of package work.
func TestFindings_work(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ignored", "outer"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			analysistest.Run(t, filepath.Join(testdata(t), "work"), finding(t, name), "./"+name)
		})
	}
}

// The changes that findings suggest make of a program what the golden file beside it holds.
func TestFixes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dropped", "outer", "silenced", "tags"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			analysistest.RunWithSuggestedFixes(t, testdata(t), finding(t, name), "./fixes/"+name)
		})
	}
}
