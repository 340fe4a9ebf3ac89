package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/modules"
)

// What a release tags can be installed and required as users do it: here from the tree, as a version of its own.
func TestRelease_installs(t *testing.T) {
	t.Parallel()
	tree, proxy, cache := t.TempDir(), t.TempDir(), t.TempDir()
	version := "v0.99." + copyTree(t, tree)
	if err := modules.Release(t.Context(), tree, version); err != nil {
		t.Fatal(err)
	}
	if err := modules.Proxy(t.Context(), tree, proxy, version); err != nil {
		t.Fatal(err)
	}
	m := emptyModule(t)
	m.env[0] = strings.Replace(m.env[0], "GOPROXY=", "GOPROXY=file://"+filepath.ToSlash(proxy)+",", 1)
	bin := t.TempDir()
	m.env = append(m.env, "GOMODCACHE="+cache, "GOBIN="+bin, "GONOSUMDB=*", "GOFLAGS=-trimpath -mod=mod -modcacherw")
	for _, command := range []string{"cmd/gormlock", "gormlockvet/cmd/gormlockvet"} {
		m.run(t, "go", "install", ours+"/"+command+"@"+version)
		if _, err := os.Stat(filepath.Join(bin, filepath.Base(command))); err != nil {
			t.Error(err)
		}
	}
	m.run(t, "go", "mod", "init", "scratch")
	program := "package main\n\nimport (\n\t_ \"" + ours + "\"\n\t_ \"" + ours + "/gormlocktest\"\n\t_ \"" + ours + "/observe/otelobserve\"\n)\n\nfunc main() {}\n"
	if err := os.WriteFile(filepath.Join(m.dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	m.run(t, "go", "get", ours+"@"+version, ours+"/gormlocktest@"+version, ours+"/observe/otelobserve@"+version)
	m.run(t, "go", "build", "-o", os.DevNull, ".")
	if tags := modules.Tags(version); !slices.Contains(tags, version) || !slices.Contains(tags, "observe/otelobserve/"+version) || len(tags) != 4 {
		t.Errorf("tags %q", tags)
	}
}

// copyTree copies the files that git knows of this repository, and makes a repository of them. It returns a number that is another
// one for another tree: what was built of the same one need not be built again.
func copyTree(t *testing.T, to string) string {
	t.Helper()
	copying := exec.CommandContext(t.Context(), "bash", "-c", `set -euo pipefail
		git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d "" file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
			tar --null -T - -cf - | tar -xf - -C "$0"; git -C "$0" init -q; git -C "$0" add -A; git -C "$0" write-tree`, to)
	copying.Dir = ".."
	out, err := copying.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	number, err := strconv.ParseUint(string(out[:min(15, len(out))]), 16, 64)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strconv.FormatUint(number, 10)
}
