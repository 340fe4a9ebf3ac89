package tests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	ours       = "github.com/gormlock/gormlock"
	gormModule = "gorm.io/gorm"
	pgxModule  = "github.com/jackc/pgx/v5"
	otelModule = "go.opentelemetry.io/otel"
)

// mayImport holds what each package may import besides the standard library: of this module by
// the path in it ("." is the root), of others by module. A package that is not here is an error.
var mayImport = map[string][]string{
	".":                   {"hooks", "advisory", "lockkey", "fence", "observe", "internal/sqltx", "internal/keynames", gormModule},
	"hooks":               {gormModule},
	"lockkey":             {},
	"lockkey/compat":      {"lockkey"},
	"fence":               {},
	"observe":             {},
	"observe/otelobserve": {"observe", otelModule, otelModule + "/metric", otelModule + "/trace"},
	"advisory":            {"lockkey", "observe"},
	"lease":               {"advisory", "lockkey", "fence", "observe"},
	"sessionlock":         {"advisory", "lockkey", "fence", "observe", pgxModule},
	"inspect":             {"lockkey", "lockkey/compat", "observe", "internal/keynames"},
	"internal/keynames":   {},
	"cmd/gormlock": {
		".", "advisory", "lockkey", "lockkey/compat", "fence", "observe", "lease", "sessionlock", "inspect", pgxModule,
	},
	"internal/sqltx":    {},
	"internal/pgserver": {pgxModule, "github.com/fergusstrange/embedded-postgres"},
	"internal/wiretap":  {},
}

// mayReach holds the modules that come into a user's binary, those that gorm, pgx and otel bring
// themselves included. What tests, benchmarks and examples need is not among them.
var mayReach = []string{
	gormModule, "github.com/jinzhu/inflection", "github.com/jinzhu/now",
	pgxModule, "github.com/jackc/pgpassfile", "github.com/jackc/pgservicefile", "github.com/jackc/puddle/v2",
	"golang.org/x/sync", "golang.org/x/text",
	otelModule, otelModule + "/metric", otelModule + "/trace", "github.com/cespare/xxhash/v2", "github.com/go-logr/logr",
	"github.com/go-logr/stdr", "go.opentelemetry.io/auto/sdk",
}

// neverReaches holds what stays out of a package however far down, so that a user compiles only
// what they use.
var neverReaches = map[string][]string{
	".":           {pgxModule},
	"hooks":       {pgxModule},
	"advisory":    {gormModule, pgxModule},
	"lease":       {gormModule, pgxModule},
	"inspect":     {gormModule, pgxModule},
	"sessionlock": {gormModule},
}

// forPrograms holds what examples may import of what users cannot: a server to run on, and a counter of round trips.
var forPrograms = []string{"internal/pgserver", "internal/wiretap"}

func TestLayering(t *testing.T) {
	t.Parallel()
	packages := load(t)
	if len(packages.own()) == 0 {
		t.Fatal("go list shows no package of this module")
	}
	for _, violation := range packages.violations() {
		t.Error(violation)
	}
}

// The rules see what they are there for: one import too many in a sound graph is one violation.
func TestLayering_seesEachBadImport(t *testing.T) {
	t.Parallel()
	sound := graph{
		ours:                        {Imports: []string{ours + "/advisory", gormModule, "fmt"}},
		ours + "/advisory":          {Imports: []string{ours + "/lockkey", "database/sql"}},
		ours + "/lockkey":           {Imports: []string{"fmt"}},
		ours + "/sessionlock":       {Imports: []string{ours + "/advisory", pgxModule}},
		ours + "/internal/pgserver": {Imports: []string{pgxModule}},
		ours + "/internal/pgtest":   {Imports: []string{ours + "/internal/pgserver", "testing"}},
		ours + "/internal/wiretap":  {Imports: []string{"fmt"}},
		ours + "/examples/tour":     {Imports: []string{ours, ours + "/internal/pgserver", ours + "/internal/wiretap"}},
		gormModule:                  {Module: &mod{gormModule}, Imports: []string{"database/sql"}},
		pgxModule:                   {Module: &mod{pgxModule}},
		"go.uber.org/goleak":        {Module: &mod{"go.uber.org/goleak"}},
		"fmt":                       {Standard: true},
		"database/sql":              {Standard: true},
		"testing":                   {Standard: true},
	}
	if v := sound.violations(); len(v) > 0 {
		t.Fatalf("the sound graph has violations: %q", v)
	}
	for _, bad := range []struct{ from, to, want string }{
		{ours, pgxModule, ". may not import " + pgxModule},
		{ours + "/lockkey", ours + "/advisory", "lockkey may not import advisory"},
		{ours + "/lockkey", gormModule, "lockkey may not import " + gormModule},
		{ours + "/sessionlock", gormModule, "sessionlock may not reach " + gormModule},
		{ours + "/advisory", "go.uber.org/goleak", "advisory may not reach go.uber.org/goleak"},
		{gormModule, pgxModule, ". may not reach " + pgxModule + ": . > " + gormModule + " > " + pgxModule},
		{pgxModule, "testing", "sessionlock may not reach testing: sessionlock > " + pgxModule + " > testing"},
		{ours + "/advisory", ours + "/internal/pgserver", "advisory may not import internal/pgserver"},
		{ours + "/examples/tour", ours + "/internal/pgtest", "examples/tour may not import internal/pgtest"},
		{ours + "/internal/pgserver", "testing", "internal/pgserver may not import testing"},
		{ours + "/unheard", "fmt", "unheard has no rule"},
	} {
		changed := maps.Clone(sound)
		p := changed[bad.from]
		p.Imports = append(slices.Clone(p.Imports), bad.to)
		changed[bad.from] = p
		if !slices.ContainsFunc(changed.violations(), func(v string) bool { return strings.HasPrefix(v, bad.want) }) {
			t.Errorf("%s imports %s: got %q, want %q among them", bad.from, bad.to, changed.violations(), bad.want)
		}
	}
}

// longest is how many lines a file may have that is read rather than run through.
const longest = 350

func TestFiles_areShort(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != ".." && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case entry.IsDir(), filepath.Ext(path) != ".go", strings.HasSuffix(path, "_test.go"):
			return nil
		}
		seen++
		content, err := os.ReadFile(path)
		if lines := bytes.Count(content, []byte("\n")); lines > longest {
			t.Errorf("%s has %d lines, more than %d: split it by what its parts are about", path, lines, longest)
		}
		return err
	})
	if err != nil || seen == 0 {
		t.Fatalf("%d Go files read: %v", seen, err)
	}
}

type mod struct{ Path string }

type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Module     *mod
}

// graph is the packages of this module and all they need, without tests, by import path.
type graph map[string]pkg

func load(t *testing.T) graph {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports,Module", "./...")
	list.Dir = ".."
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	packages := graph{}
	for decoder := json.NewDecoder(bufio.NewReader(bytes.NewReader(out))); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		packages[p.ImportPath] = p
	}
}

func (g graph) violations() []string {
	var found []string
	for _, from := range g.own() {
		found = append(found, g.badImports(from)...)
		found = append(found, g.badReach(from)...)
	}
	return found
}

func (g graph) badImports(from string) []string {
	var found []string
	allowed, ruled := mayImport[short(from)]
	switch {
	case forTestsOnly(from):
		return nil
	case isProgram(from):
		for _, to := range g[from].Imports {
			if strings.HasPrefix(to, ours+"/internal/") && !slices.Contains(forPrograms, short(to)) {
				found = append(found, fmt.Sprintf("%s may not import %s", short(from), short(to)))
			}
		}
		return found
	case !ruled:
		return []string{short(from) + " has no rule: say in mayImport what it may import"}
	}
	for _, to := range g[from].Imports {
		if to == "testing" || !g[to].Standard && !slices.Contains(allowed, g.name(to)) {
			found = append(found, fmt.Sprintf("%s may not import %s", short(from), short(to)))
		}
	}
	return found
}

// badReach names what a package brings along that it must not, with the way there.
func (g graph) badReach(from string) []string {
	if forTestsOnly(from) {
		return nil
	}
	var found []string
	via := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if why := g.refusal(from, at); why != "" {
			way := short(at)
			for p := via[at]; p != ""; p = via[p] {
				way = short(p) + " > " + way
			}
			found = append(found, fmt.Sprintf("%s may not reach %s: %s", short(from), why, way))
			continue
		}
		for _, to := range g[at].Imports {
			if _, seen := via[to]; !seen {
				via[to] = at
				queue = append(queue, to)
			}
		}
	}
	return found
}

// refusal names what is wrong with at being in a binary of from; empty: nothing.
func (g graph) refusal(from, at string) string {
	name := g.name(at)
	switch {
	case isProgram(from), strings.HasPrefix(from, ours+"/internal/"):
		return "" // in nobody's binary; what is, is seen from the packages that bring it
	case name == "testing":
		return name
	case slices.Contains(neverReaches[short(from)], name):
		return name
	case g[at].Module != nil && !isOurs(at) && !slices.Contains(mayReach, name):
		return name
	}
	return ""
}

func (g graph) own() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(g)), func(p string) bool { return !isOurs(p) })
}

// name is how the rules call a package: ours by the path in the module, others by their module.
func (g graph) name(importPath string) string {
	if m := g[importPath].Module; m != nil && !isOurs(importPath) {
		return m.Path
	}
	return short(importPath)
}

func isOurs(importPath string) bool {
	return importPath == ours || strings.HasPrefix(importPath, ours+"/")
}

func short(importPath string) string {
	if importPath == ours {
		return "."
	}
	return strings.TrimPrefix(importPath, ours+"/")
}

// isProgram holds for what is run here and imported by nobody.
func isProgram(importPath string) bool {
	return strings.HasPrefix(importPath, ours+"/examples/") || strings.HasPrefix(importPath, ours+"/tests")
}

// forTestsOnly holds for what _test.go files alone import, with all that they need.
func forTestsOnly(importPath string) bool {
	return slices.Contains([]string{"internal/pgtest", "internal/torture", "gormlocktest"}, short(importPath))
}
