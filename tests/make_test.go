package tests

import (
	"os"
	"os/exec"
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
		together + "./... ./examples/... ./gormlocktest/... ./observe/otelobserve/... ./tests" + testsButInvariants(t),
		"go -C gormlockvet test -timeout 20m -v ./...", // without the race detector
		"go -C tests/adapters test" + race + "./...", "go -C tests/compat test" + race + "./...",
		"together: go test -timeout 20m -v ./tests/invariants", // without it too, and so not among the others
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

// testsButInvariants are the patterns of the folders here that belong to this module, but one.
func testsButInvariants(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var patterns strings.Builder
	for _, e := range entries {
		if _, err := os.Stat(e.Name() + "/go.mod"); e.IsDir() && err != nil && e.Name() != "invariants" {
			patterns.WriteString(" ./tests/" + e.Name() + "/...")
		}
	}
	return patterns.String()
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
