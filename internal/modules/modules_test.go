package modules_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/modules"
)

// The modules of this repository are in step.
func TestCheck_ofThisRepository(t *testing.T) {
	t.Parallel()
	problems, err := modules.Check(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p + ": go run ./scripts/modules sync")
	}
}

// house is a repository in step: at its root a module, and below it one that requires it, one that requires both, and one
// apart. What they require of others is named by directories, so that nothing is fetched.
func house(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{
		"scripts/go.work": "go 1.25.0\n\nuse (\n\t..\n\t../tests\n\t../tests/deep\n)\n",
		"go.mod":          "module example.com/house\n\ngo 1.25.0\n\nrequire example.com/lib v1.1.0\n",
		"house.go":        "package house\n\nimport _ \"example.com/lib\"\n",
		"tests/go.mod": "module example.com/house/tests\n\ngo 1.25.0\n\nreplace example.com/house => ..\n\n" +
			"require example.com/house v0.1.0\n\nrequire example.com/lib v1.1.0\n\nrequire example.com/tool v1.9.0\n",
		"tests/deep/go.mod": "module example.com/house/tests/deep\n\ngo 1.25.0\n\nreplace example.com/house => ../..\n\nreplace example.com/house/tests => ..\n\n" +
			"require (\n\texample.com/house v0.1.0\n\texample.com/house/tests v0.1.0\n\texample.com/lib v1.1.0 // indirect\n\texample.com/tool v1.9.0\n)\n",
		"bench/go.mod":    "module example.com/house/bench\n\ngo 1.25.0\n",
		"testdata/go.mod": "module example.com/nobodys\n",
	} {
		write(t, filepath.Join(root, name), text)
	}
	return root
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// change replaces a text that is there once.
func change(t *testing.T, file, from, to string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), from) != 1 {
		t.Fatalf("%s holds %q not once:\n%s", file, from, text)
	}
	write(t, file, strings.Replace(string(text), from, to, 1))
}

func TestCheck_seesWhatIsOutOfStep(t *testing.T) {
	t.Parallel()
	if problems, err := modules.Check(t.Context(), house(t)); err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	for _, c := range []struct{ file, from, to, want string }{
		{"tests/go.mod", "example.com/house/tests\n", "example.com/other\n", "tests/go.mod: the module is called example.com/other, its directory says example.com/house/tests"},
		{"tests/go.mod", "go 1.25.0", "go 1.24.0", "tests/go.mod: go 1.24.0, the root has go 1.25.0: what is in the workspace has no other"},
		{"bench/go.mod", "go 1.25.0", "go 1.24.0", "bench/go.mod: go 1.24.0, the root has go 1.25.0, and nothing that is required asks for more"},
		{"tests/deep/go.mod", "replace example.com/house => ../..\n", "", "tests/deep/go.mod: no line: replace example.com/house => ../.."},
		{"tests/deep/go.mod", "example.com/house => ../..", "example.com/house => /elsewhere", "replace example.com/house => /elsewhere replaces nothing"},
		{"tests/go.mod", "require example.com/house v0.1.0", "", "replace example.com/house => .. replaces nothing"},
		{"go.mod", "require", "replace example.com/lib => ./lib\n\nrequire", "go.mod: the root replaces modules"},
		{"tests/go.mod", "lib v1.1.0", "lib v1.2.0", "tests/go.mod: requires example.com/lib v1.2.0, it is v1.1.0 elsewhere"},
		{"tests/deep/go.mod", "tool v1.9.0", "tool v1.10.0", "tests/go.mod: requires example.com/tool v1.9.0, it is v1.10.0 elsewhere"},
		{"tests/deep/go.mod", "tool v1.9.0", "tool v1.9.0-rc1", "tests/deep/go.mod: requires example.com/tool v1.9.0-rc1, it is v1.9.0 elsewhere"},
		{"tests/deep/go.mod", "house/tests v0.1.0", "house/tests v0.2.0", "tests/go.mod: requires example.com/house v0.1.0, it is v0.2.0 elsewhere"},
		{"scripts/go.work", "\t../tests/deep\n", "", "scripts/go.work: does not use tests/deep"},
		{"scripts/go.work", "\t../tests\n", "\t../tests\n\t../bench\n", "scripts/go.work: uses bench, which is apart"},
		{"scripts/go.work", "go 1.25.0", "go 1.26.0", "scripts/go.work: does not begin with go 1.25.0"},
	} {
		root := house(t)
		change(t, filepath.Join(root, c.file), c.from, c.to)
		problems, err := modules.Check(t.Context(), root)
		if err != nil || !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) }) {
			t.Errorf("%s with %q for %q: %q, %v, want %q", c.file, c.to, c.from, problems, err, c.want)
		}
	}
	// What is apart may be ahead.
	root := house(t)
	write(t, filepath.Join(root, "bench/go.mod"), "module example.com/house/bench\n\ngo 1.25.0\n\nrequire example.com/lib v1.2.0\n")
	if problems, err := modules.Check(t.Context(), root); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

// lone is a repository whose modules require nothing but each other, so that they can be tidied.
func lone(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	write(t, filepath.Join(root, "go.mod"), "module example.com/house\n\ngo 1.25.0\n")
	write(t, filepath.Join(root, "house.go"), "package house\n")
	write(t, filepath.Join(root, "scripts/go.work"), "go 1.25.0\n\nuse (\n\t..\n\t../tests\n\t../tests/deep\n)\n")
	write(t, filepath.Join(root, "tests/go.mod"), "module example.com/house/tests\n\ngo 1.24.0\n\nreplace example.com/house => /elsewhere\n\nrequire example.com/house v0.1.0\n")
	write(t, filepath.Join(root, "tests/tests.go"), "package tests\n\nimport _ \"example.com/house\"\n")
	write(t, filepath.Join(root, "tests/deep/go.mod"), "module example.com/house/tests/deep\n\ngo 1.25.0\n\nreplace example.com/gone => ../gone\n\nrequire example.com/house/tests v0.1.0\n\nrequire example.com/house v0.1.0\n")
	write(t, filepath.Join(root, "tests/deep/deep.go"), "package deep\n\nimport _ \"example.com/house/tests\"\n")
	return root
}

func TestSync(t *testing.T) {
	t.Parallel()
	root := lone(t)
	if problems, err := modules.Check(t.Context(), root); err != nil || len(problems) < 4 {
		t.Fatal(problems, err)
	}
	for range 2 { // the second time there is nothing to do
		if err := modules.Sync(t.Context(), root); err != nil {
			t.Fatal(err)
		}
		if problems, err := modules.Check(t.Context(), root); err != nil || len(problems) > 0 {
			t.Error(problems, err)
		}
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	root := lone(t)
	if err := modules.Sync(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	if err := modules.Release(t.Context(), root, "v0.2.0"); err != nil {
		t.Fatal(err)
	}
	all, err := modules.Find(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	required := 0
	for _, m := range all {
		for _, r := range m.Requires {
			required++
			if r.Version != "v0.2.0" {
				t.Errorf("%s requires %s %s", m.Dir, r.Path, r.Version)
			}
		}
	}
	if problems, err := modules.Check(t.Context(), root); err != nil || len(problems) > 0 || required != 3 {
		t.Error(problems, err, required)
	}
	for _, version := range []string{"", "0.2.0", "v2", "v0.2.0 "} {
		if err := modules.Release(t.Context(), root, version); err == nil {
			t.Errorf("%q is taken for a version", version)
		}
	}
}
