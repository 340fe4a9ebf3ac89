// Package api keeps the public surface of every package as text: what changes there is seen in review.
package api

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/modules"
)

const module = "github.com/gormlock/gormlock"

// TestPublicSurface: the exported names of every package are those of the text beside this file. GORMLOCK_UPDATE=1
// writes what it finds.
func TestPublicSurface(t *testing.T) {
	t.Parallel()
	written := map[string]bool{}
	for _, pkg := range publicPackages(t) {
		file := strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/"), "/", "_") + ".txt"
		if pkg == module {
			file = "gormlock.txt"
		}
		written[file] = true
		found := surface(t, filepath.Join("..", "..", strings.TrimPrefix(pkg, module)), pkg)
		if os.Getenv("GORMLOCK_UPDATE") != "" {
			if err := os.WriteFile(file, []byte(found), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		reviewed, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%s has no reviewed surface: GORMLOCK_UPDATE=1 go -C tests test ./api writes it", pkg)
			continue
		}
		for _, line := range difference(string(reviewed), found) {
			t.Errorf("%s: %s", pkg, line)
		}
	}
	texts, err := filepath.Glob("*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if !written[text] {
			t.Errorf("%s is about no package", text)
		}
	}
}

// publicPackages are the packages that others can import and are meant to.
func publicPackages(t *testing.T) []string {
	t.Helper()
	all, err := modules.Find(t.Context(), filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	for _, m := range all {
		if !m.Readable() {
			continue
		}
		list := exec.CommandContext(t.Context(), "go", "list", "-f", "{{if ne .Name \"main\"}}{{if .GoFiles}}{{.ImportPath}}{{end}}{{end}}", "./...")
		list.Dir, list.Env, list.Stderr = filepath.Join("..", "..", filepath.FromSlash(m.Dir)), append(os.Environ(), "GOWORK=off"), os.Stderr
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, strings.Fields(string(out))...)
	}
	packages = slices.DeleteFunc(packages, func(pkg string) bool {
		return strings.Contains(pkg, "/internal/") || slices.ContainsFunc([]string{"tests", "examples", "bench"}, func(dir string) bool {
			return pkg == module+"/"+dir || strings.HasPrefix(pkg, module+"/"+dir+"/")
		})
	})
	if len(packages) == 0 {
		t.Fatal("go list shows no package")
	}
	return packages
}

// surface is what a package exports, one declaration after the other.
func surface(t *testing.T, dir, path string) string {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseDir(files, dir, func(info fs.FileInfo) bool { return !strings.HasSuffix(info.Name(), "_test.go") }, parser.ParseComments) //nolint:staticcheck // no build tags here
	if err != nil {
		t.Fatal(err)
	}
	var sources []*ast.File
	for _, pkg := range parsed {
		for _, name := range slices.Sorted(maps.Keys(pkg.Files)) {
			sources = append(sources, pkg.Files[name])
		}
	}
	about, err := doc.NewFromFiles(files, sources, path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range undocumented(about) {
		t.Errorf("%s.%s has no comment", path, name)
	}
	var b strings.Builder
	show := func(node any) {
		if err := (&printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 8}).Fprint(&b, files, node); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
	}
	values := func(all []*doc.Value) {
		for _, v := range all {
			show(bare(v.Decl))
		}
	}
	functions := func(all []*doc.Func) {
		for _, f := range all {
			f.Decl.Doc, f.Decl.Body = nil, nil
			show(f.Decl)
		}
	}
	b.WriteString("package " + about.Name + "\n\n")
	values(about.Consts)
	values(about.Vars)
	functions(about.Funcs)
	for _, typ := range about.Types {
		b.WriteByte('\n')
		show(bare(typ.Decl))
		values(typ.Consts)
		values(typ.Vars)
		functions(typ.Funcs)
		functions(typ.Methods)
	}
	return b.String()
}

// undocumented are the exported names that say nothing of themselves. Methods that a comment on a group, or the interface
// they implement, speaks for are the ones named here.
func undocumented(about *doc.Package) []string {
	var names []string
	functions := func(owner string, all []*doc.Func) {
		for _, f := range all {
			if f.Doc == "" && !spokenFor[f.Name] {
				names = append(names, owner+f.Name)
			}
		}
	}
	values := func(all []*doc.Value) {
		for _, v := range all {
			for _, spec := range v.Decl.Specs {
				if s := spec.(*ast.ValueSpec); v.Doc == "" && s.Doc == nil && s.Comment == nil && ast.IsExported(s.Names[0].Name) {
					names = append(names, s.Names[0].Name)
				}
			}
		}
	}
	functions("", about.Funcs)
	values(about.Consts)
	values(about.Vars)
	for _, typ := range about.Types {
		if typ.Doc == "" {
			names = append(names, typ.Name)
		}
		functions(typ.Name+".", typ.Funcs)
		functions(typ.Name+".", typ.Methods)
		values(typ.Consts)
		values(typ.Vars)
	}
	return names
}

// spokenFor are methods of interfaces of others.
var spokenFor = map[string]bool{"Error": true, "Unwrap": true, "Is": true, "String": true, "Build": true, "Name": true, "MergeClause": true}

// bare is a declaration without its comments.
func bare(d *ast.GenDecl) *ast.GenDecl {
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			n.Doc = nil
		case *ast.TypeSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.ValueSpec:
			n.Doc, n.Comment = nil, nil
		case *ast.Field:
			n.Doc, n.Comment = nil, nil
		}
		return true
	})
	return d
}

// difference is the lines that only one of two texts has.
func difference(before, after string) []string {
	old, now := strings.Split(before, "\n"), strings.Split(after, "\n")
	var lines []string
	for _, line := range old {
		if !slices.Contains(now, line) {
			lines = append(lines, "gone: "+line)
		}
	}
	for _, line := range now {
		if !slices.Contains(old, line) {
			lines = append(lines, "new: "+line)
		}
	}
	if len(lines) == 0 && before != after {
		lines = append(lines, "the order changed")
	}
	return lines
}
