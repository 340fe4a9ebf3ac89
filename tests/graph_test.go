package tests

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/modules"
)

type mod struct{ Path string }

type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Module     *mod
}

// graph is the packages of all our modules and all they need, without tests, by import path.
type graph map[string]pkg

func load(t *testing.T) graph {
	t.Helper()
	all, err := modules.Find(t.Context(), "..")
	if err != nil {
		t.Fatal(err)
	}
	packages := graph{}
	for _, m := range all {
		if m.Readable() {
			packages.add(t, filepath.Join("..", filepath.FromSlash(m.Dir)))
		}
	}
	return packages
}

// add adds the packages of one module.
func (g graph) add(t *testing.T, dir string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports,Module", "./...")
	list.Dir, list.Env = dir, append(os.Environ(), "GOWORK=off")
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v\n%s", dir, err, stderr.String())
	}
	for decoder := json.NewDecoder(bufio.NewReader(bytes.NewReader(out))); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("go list in %s: %v", dir, err)
		}
		g[p.ImportPath] = p
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
	if forTestsOnly(from) {
		return nil
	}
	if program, internals := programOf(from); program != "" {
		return g.badImportsOfProgram(from, program, internals)
	}
	allowed, ruled := mayImport[short(from)]
	if !ruled {
		return []string{short(from) + " has no rule: say in mayImport what it may import"}
	}
	var found []string
	for _, to := range g[from].Imports {
		at, stands := storeyOf(from)
		toAt, toStands := storeyOf(to)
		switch {
		case stands && toStands && toAt <= at:
			found = append(found, fmt.Sprintf("%s may not import %s: it does not stand below", short(from), short(to)))
		case to == "testing" || !g[to].Standard && !slices.Contains(allowed, g.name(to)):
			found = append(found, fmt.Sprintf("%s may not import %s", short(from), short(to)))
		}
	}
	return found
}

func (g graph) badImportsOfProgram(from, program string, internals []string) []string {
	var found []string
	for _, to := range g[from].Imports {
		if !isOurs(to) || !strings.Contains(short(to), "internal") || strings.HasPrefix(short(to), program+"/") || slices.Contains(internals, "*") {
			continue
		}
		if !slices.Contains(internals, short(to)) {
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
	program, _ := programOf(from)
	switch {
	case program != "", strings.HasPrefix(from, ours+"/internal/"):
		return "" // in nobody's binary; what is, is seen from the packages that bring it
	case name == "testing":
		return name
	case slices.Contains(neverReaches[short(from)], name):
		return name
	case g[at].Module != nil && !isOurs(at) && !slices.Contains(mayReach, name) && !slices.Contains(reachesMore[short(from)], name):
		return name
	}
	return ""
}

func (g graph) own() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(g)), func(p string) bool { return !isOurs(p) })
}

// name is how the rules call a package: ours by the path from the root, others by their module.
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

// storeyOf is how far from the top a package stands, if it is one of the storeys'.
func storeyOf(importPath string) (at int, stands bool) {
	at = slices.IndexFunc(storeys, func(storey []string) bool { return slices.Contains(storey, short(importPath)) })
	return at, at >= 0
}

// programOf is the directory of programs that a package lies in, and what it may import there.
func programOf(importPath string) (dir string, internals []string) {
	for dir, internals := range programs {
		if short(importPath) == dir || strings.HasPrefix(short(importPath), dir+"/") {
			return dir, internals
		}
	}
	return "", nil
}

// forTestsOnly holds for what _test.go files alone import, with all that they need.
func forTestsOnly(importPath string) bool {
	return slices.Contains([]string{"internal/pgtest", "internal/chromium", "gormlocktest"}, short(importPath))
}
