package tests

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/modules"
)

// mostMore is how many modules a program may have more with gormlock than with GORM and its driver alone: gormlock, and
// go-sqlmock with what that requires, for tests of the errors of drivers.
const mostMore = 3

// neverInASum are modules that gormlock's own tests, adapters and tools need and its users do not.
var neverInASum = []string{
	"github.com/fergusstrange/embedded-postgres", "github.com/glebarez/sqlite", "github.com/glebarez/go-sqlite", "modernc.org/sqlite",
	"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/sdk", "github.com/anishathalye/porcupine", "pgregory.net/rapid",
	"go.uber.org/goleak", "gorm.io/plugin/dbresolver",
}

// A stranger's program with all of gormlock: what its module graph and its go.sum have more than with GORM alone.
func TestModules_fewComeToAUser(t *testing.T) {
	t.Parallel()
	without, _ := graphOf(t, `_ "gorm.io/driver/postgres"`)
	all := `_ "gorm.io/driver/postgres"; _ "` + ours + `"`
	for _, p := range []string{"advisory", "fence", "hooks", "inspect", "lease", "lockkey", "lockkey/compat", "observe", "pgxlock", "sessionlock"} {
		all += `; _ "` + ours + "/" + p + `"`
	}
	with, sum := graphOf(t, all)
	more := slices.DeleteFunc(with, func(module string) bool { return slices.Contains(without, module) })
	if len(more) > mostMore || !slices.Contains(more, ours) {
		t.Errorf("%d modules more, at most %d: %q", len(more), mostMore, more)
	}
	for line := range strings.Lines(sum) {
		if module, _, _ := strings.Cut(line, " "); slices.Contains(neverInASum, module) {
			t.Errorf("in go.sum: %s", strings.TrimSpace(line))
		}
	}
}

// What the root requires itself: GORM with its driver, pgx, and go-sqlmock for tests of the errors of drivers.
func TestModules_rootRequiresFew(t *testing.T) {
	t.Parallel()
	all, err := modules.Find(t.Context(), "..")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"github.com/DATA-DOG/go-sqlmock", pgxModule, "gorm.io/driver/postgres", gormModule}
	var got []string
	for _, r := range all[0].Requires {
		if !r.Indirect {
			got = append(got, r.Path)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the root requires %q, want %q", got, want)
	}
}

// graphOf is the modules of a program that imports packages, by path, and its go.sum.
func graphOf(t *testing.T, imports string) (paths []string, sum string) {
	t.Helper()
	m := newProgram(t, "package main\n\nimport ("+imports+")\n\nfunc main() {}\n")
	m.run(t, atOurVersions(t, []string{"go", "get", "gorm.io/driver/postgres", "gorm.io/gorm"})...)
	m.run(t, "go", "mod", "tidy")
	paths = strings.Fields(m.run(t, "go", "list", "-m", "-f", "{{if not .Main}}{{.Path}}{{end}}", "all"))
	return paths, file(t, filepath.Join(m.dir, "go.sum"))
}
