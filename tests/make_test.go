package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/modules"
)

// `make test` runs packages of any module, each where it lies, and all of them where none is named.
func TestMake_testsPackagesOfAnyModule(t *testing.T) {
	t.Parallel()
	const race = " -race -timeout 20m -v "
	together := "together: go test" + race
	all := []string{
		together + "./... ./examples/... ./gormlocktest/... ./observe/otelobserve/... ./tests" + racedTests(t),
		"go -C gormlockvet test -timeout 20m -v ./...", // without the race detector
		"go -C tests/adapters test" + race + "./...", "go -C tests/compat test" + race + "./...",
		"together: go test -timeout 20m -v ./" + strings.Join(alone(t), " ./"), // without it too, and so not among the others
	}
	for pkg, want := range map[string][]string{
		"":                         all,
		"./...":                    all,
		".":                        {together + "."},
		"./lockkey":                {together + "./lockkey"},
		"./lease ./tests/rows":     {together + "./lease ./tests/rows"},
		"./tests/...":              {together + "./tests/..."},
		"./tests/compat":           {"go -C tests/compat test" + race + "."},
		"./bench/report ./lockkey": {together + "./lockkey", "go -C bench test" + race + "./report"},
	} {
		var ran []string
		for line := range strings.Lines(dryMake(t, "test", pkg, "-v")) {
			workspace, command, is := strings.Cut(strings.TrimSpace(line), "scripts/with-postgres ")
			is = is && strings.HasPrefix(command, "go ") // before it, PostgreSQL is installed
			if is && strings.HasPrefix(workspace, "GOWORK=/") && strings.HasSuffix(workspace, "/"+modules.Workspace+" ") {
				command = "together: " + command
			}
			if is {
				ran = append(ran, command)
			}
		}
		if !slices.Equal(ran, want) {
			t.Errorf("make test PKG=%q runs\n%q\nwant\n%q", pkg, ran, want)
		}
	}
}

// racedTests are the patterns of the folders here that belong to this module and are tested with the race detector.
func racedTests(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var patterns strings.Builder
	for _, e := range entries {
		if _, err := os.Stat(e.Name() + "/go.mod"); e.IsDir() && err != nil && !slices.Contains(alone(t), "tests/"+e.Name()) {
			patterns.WriteString(" ./tests/" + e.Name() + "/...")
		}
	}
	return patterns.String()
}

// alone are the folders of tests that make runs without the race detector.
func alone(t *testing.T) []string {
	t.Helper()
	_, line, _ := strings.Cut(file(t, "../Makefile"), "\nALONE := ")
	line, _, _ = strings.Cut(line, "\n")
	return strings.Fields(line)
}

// Where a test starts a goroutine, the race detector looks, but at one that an oracle judges beside a matrix of thousands of cells.
func TestMake_racesWhereGoroutinesMeet(t *testing.T) {
	t.Parallel()
	for _, dir := range alone(t) {
		files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has %d files of tests: %v", dir, len(files), err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "/invariants/rooted_walk_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				called, _ := n.(*ast.SelectorExpr)
				if _, starts := n.(*ast.GoStmt); starts || called != nil && (called.Sel.Name == "Go" || called.Sel.Name == "AfterFunc") {
					t.Errorf("%s starts a goroutine, so ALONE in the Makefile must not name %s", path, dir)
				}
				return true
			})
		}
	}
}

// What make calls a module, and which of them are apart, is what internal/modules finds.
func TestMake_knowsAllModules(t *testing.T) {
	t.Parallel()
	all, err := modules.Find(t.Context(), "..")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string][]string{}
	for line := range strings.Lines(file(t, "../Makefile")) {
		name, dirs, _ := strings.Cut(line, " := ")
		named[name] = strings.Fields(dirs)
	}
	for _, m := range all {
		name := "TOGETHER"
		if slices.Contains(modules.Apart, m.Dir) {
			name = "APART"
		}
		if m.Dir != "." && !slices.Contains(named[name], m.Dir) {
			t.Errorf("%s of the Makefile is %q, without %s", name, named[name], m.Dir)
		}
	}
	if n := len(named["TOGETHER"]) + len(named["APART"]) + 1; n != len(all) {
		t.Errorf("the Makefile has %d modules, there are %d", n, len(all))
	}
}

// dryMake is what make would run.
func dryMake(t *testing.T, target, pkg, flags string) string {
	t.Helper()
	args := []string{"-n", "--no-print-directory", target, "TESTFLAGS=" + flags}
	if pkg != "" {
		args = append(args, "PKG="+pkg)
	}
	command := exec.CommandContext(t.Context(), "make", args...)
	command.Dir = ".."
	// What a make that runs the tests says to those below it is not for this one.
	command.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=") || strings.HasPrefix(v, "PKG=") || strings.HasPrefix(v, "TESTFLAGS=")
	})
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("make -n %s: %v\n%s", target, err, out)
	}
	return string(out)
}
