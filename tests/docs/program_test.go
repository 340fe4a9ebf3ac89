package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// program is the source of a test binary that runs the snippets of documents, and of the snippets that are programs themselves.
// It is laid over the repository, where nothing is written, and so is compiled as a part of the module.
type program struct {
	c         *compiler
	files     map[string]string // by their path in the repository
	packages  []string          // of snippets
	mains     []whole
	documents string // of runner.Run
}

// whole is a snippet that is a program.
type whole struct{ dir, name string }

const (
	modulePath = "github.com/gormlock/gormlock"
	runnerPath = modulePath + "/tests/docs/runner"
	programDir = "tests/docs/program"
)

func (p *program) add(t *testing.T, d document, snippets []snippet) {
	t.Helper()
	if len(snippets) == 0 {
		return
	}
	shared, listed := "", ""
	for n, s := range snippets {
		f := p.c.check(d, s)
		if len(f.errs) > 0 {
			t.Errorf("%s:%d does not compile: %v", d.path, s.line, f.errs)
			continue
		}
		if s.isProgram() {
			dir := fmt.Sprintf("main%d", len(p.mains))
			p.files[filepath.Join(programDir, dir, "main.go")] = f.text
			p.mains = append(p.mains, whole{dir, fmt.Sprintf("%s:%d", d.path, s.line)})
			continue
		}
		if shared == "" && !f.isDeclarations() {
			shared = p.addPackage(t, p.c.checkForm(d, "package snippet\n"))
		}
		in := shared
		if f.isDeclarations() {
			in = p.addPackage(t, f) // of its own: what it declares is nobody else's
		}
		name := "run" + strconv.Itoa(n)
		function, err := p.c.function(f, name)
		if err != nil {
			t.Error(err)
			continue
		}
		p.files[filepath.Join(programDir, in, name+".go")] = "package snippet\n" + p.c.imports(f, f.file) +
			fmt.Sprintf("var _ runner.Snippet\nfunc R%s() { begin(); %s%s(); end() }\n", name[1:], managers(f), name) + function
		listed += fmt.Sprintf("{%d, %s.R%s}, ", s.line, in, name[1:])
	}
	p.documents += fmt.Sprintf("\t{%q, %q, []runner.Snippet{%s}},\n", d.path, strings.Join(d.sql(), ";\n"), listed)
}

// managers opens those that a snippet uses.
func managers(f form) string {
	opened := ""
	for _, name := range []string{"locks", "leases"} {
		variable := f.scope.Lookup(name)
		for used, object := range f.info.Uses {
			if object == variable && f.file.FileStart <= used.Pos() && used.Pos() <= f.file.FileEnd {
				opened += fmt.Sprintf("%s = runner.Here().%s(); ", name, strings.ToUpper(name[:1])+name[1:])
				break
			}
		}
	}
	return opened
}

// addPackage adds a package of snippets, with the preludes that a form was checked with.
func (p *program) addPackage(t *testing.T, f form) string {
	t.Helper()
	if len(f.errs) > 0 {
		t.Fatal(f.errs)
	}
	name := fmt.Sprintf("snippets%d", len(p.packages))
	p.packages = append(p.packages, name)
	for i, prelude := range f.preludes {
		imports := p.c.imports(f, prelude)
		prelude.Decls = slices.DeleteFunc(prelude.Decls, func(decl ast.Decl) bool { return !isNoImport(decl) })
		var text bytes.Buffer
		if err := format.Node(&text, p.c.files, prelude.Decls); err != nil {
			t.Fatal(err)
		}
		p.files[fmt.Sprintf("%s/%s/prelude%d.go", programDir, name, i)] = "package snippet\n" + imports + text.String()
	}
	return name
}

// imports are those that a file of a form uses.
func (c *compiler) imports(f form, file *ast.File) string {
	used := map[string]bool{runnerPath: file == f.file}
	for name, object := range f.info.Uses {
		if pkg, ok := object.(*types.PkgName); ok && file.FileStart <= name.Pos() && name.Pos() <= file.FileEnd {
			used[pkg.Imported().Path()] = true
		}
	}
	var list []string
	for path, is := range used {
		if is {
			list = append(list, strconv.Quote(path))
		}
	}
	slices.Sort(list) // so that the compiler's cache knows the file
	return "import (" + strings.Join(list, "; ") + ")\n"
}

// build returns the directory of the test binary, all.test, and of the snippets that are programs.
func (p *program) build(t *testing.T) string {
	t.Helper()
	text := "package all\nimport (\n\t\"testing\"\n\t\"" + runnerPath + "\"\n"
	for _, name := range p.packages {
		text += fmt.Sprintf("\t%s %q\n", name, filepath.Join(modulePath, programDir, name))
	}
	p.files[programDir+"/all/all_test.go"] = text + ")\nfunc TestDocument(t *testing.T) { runner.Run(t, []runner.Document{\n" + p.documents + "}...) }\n"
	dir, top := t.TempDir(), absolute(t, root)
	over := map[string]map[string]string{"Replace": {}}
	for path, text := range p.files {
		at := filepath.Join(dir, "src", path)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		over["Replace"][filepath.Join(top, path)] = at
	}
	overlay, err := json.Marshal(over)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/overlay.json", overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"-overlay", dir + "/overlay.json", "-buildvcs=false", "-ldflags=-s -w", "-o", dir + "/bin/"}
	if withRaceDetector() {
		flags = append(flags, "-race")
	}
	programPath := modulePath + "/" + programDir
	builds := [][]string{append(append([]string{"test", "-c", "-vet=off"}, flags...), programPath+"/all")}
	for _, main := range p.mains {
		builds = append(builds, append(append([]string{"build"}, flags...), programPath+"/"+main.dir))
	}
	for _, args := range builds {
		compile := exec.CommandContext(t.Context(), "go", args...)
		if out, err := compile.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", args[0], err, out)
		}
	}
	return dir + "/bin"
}

// withRaceDetector holds when the test was built with it, and the program is to be too.
func withRaceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
