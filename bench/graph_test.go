package bench

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// BenchmarkModules counts the modules in the graph of a program that uses gormlock, beyond those of a program that uses GORM and its driver for
// PostgreSQL. It needs no network, because the go.mod of each is there already.
func BenchmarkModules(b *testing.B) {
	plain := []string{"gorm.io/gorm", "gorm.io/driver/postgres"}
	without, with := graph(b, plain...), graph(b, append(plain, "github.com/gormlock/gormlock")...)
	maps.DeleteFunc(with, func(path string, _ bool) bool { return without[path] })
	for b.Loop() { // one round: a count does not vary
	}
	b.Logf("%v", slices.Sorted(maps.Keys(with)))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(len(with)), "more")
}

// graph returns the modules of a program that requires these, in the versions of this module.
func graph(b *testing.B, required ...string) map[string]bool {
	b.Helper()
	root, err := filepath.Abs("..")
	must(b, err)
	dir, text := b.TempDir(), "module program\n\ngo 1.26.0\n"
	for _, path := range required {
		text += fmt.Sprintf("require %s %s\n", path, strings.TrimSpace(goList(b, ".", "-f", "{{.Version}}", path)))
	}
	text += "replace github.com/gormlock/gormlock => " + root + "\n"
	must(b, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600))
	paths := map[string]bool{}
	for path := range strings.FieldsSeq(goList(b, dir, "-mod=mod", "-f", "{{.Path}}", "all")) {
		paths[path] = true
	}
	return paths
}

func goList(b *testing.B, dir string, args ...string) string {
	b.Helper()
	list := exec.CommandContext(b.Context(), "go", append([]string{"list", "-m"}, args...)...)
	list.Dir, list.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOSUMDB=off")
	out, err := list.Output()
	if err != nil {
		b.Fatalf("%v: %v", list.Args, err)
	}
	return string(out)
}

// BenchmarkPlainTransaction counts how much more an explicit transaction of GORM allocates with the plugin, without using it.
func BenchmarkPlainTransaction(b *testing.B) {
	plain, plugin := pgtest.Open(b, pgtest.Schema()), pgtest.Open(b, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	run := func(db *gorm.DB) func() error {
		return func() error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Exec("SELECT 1").Error })
		}
	}
	for b.Loop() { // one round: a count does not vary
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(moreAllocations(run(plain), run(plugin)), "more-allocs")
}
