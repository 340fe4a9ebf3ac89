package docs

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// compiler checks snippets against the packages that testdata/all.go imports.
type compiler struct {
	files    *token.FileSet
	importer types.Importer
	header   string            // of every snippet: the imports of testdata/all.go
	paths    map[string]string // of the packages it imports, by the last part
}

var importBlock = regexp.MustCompile(`(?s)import \((.*?)\n\)`)

func newCompiler(t *testing.T) *compiler {
	t.Helper()
	all, err := os.ReadFile("testdata/all.go")
	if err != nil {
		t.Fatal(err)
	}
	block := importBlock.FindString(string(all))
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	imports, paths := "", map[string]string{}
	for _, path := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(block, -1) {
		args = append(args, path[1])
		imports += path[0] + "; "
		paths[filepath.Base(path[1])] = path[1]
	}
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[path] = file
	}
	c := &compiler{files: token.NewFileSet(), header: "package snippet; import (" + imports + ")\n", paths: paths}
	c.importer = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("%s is not imported by testdata/all.go", path)
		}
		return os.Open(exports[path])
	})
	return c
}

// An ellipsis stands for a function's body, or on a line for fields or statements.
var (
	elidedBody = regexp.MustCompile(`\{ … \}`)
	elidedLine = regexp.MustCompile(`(?m)^\s*…$`)
)

// form is a snippet as a Go file, checked.
type form struct {
	text     string
	file     *ast.File
	preludes []*ast.File
	info     *types.Info
	scope    *types.Scope
	errs     []error
}

// parsed holds when what is wrong, if anything, is seen by the type checker.
func (f form) parsed() bool { return f.info != nil }

// check finds the form in which a snippet compiles, else the one that says best why it does not. Variables and imports that
// are not used are no error.
func (c *compiler) check(d document, s snippet) form {
	code := elidedLine.ReplaceAllString(elidedBody.ReplaceAllString(s.code, `{ panic("…") }`), "")
	at := fmt.Sprintf("//line %s:%d:1\n", d.path, s.line)
	if s.inline {
		_, before, _ := strings.Cut(strings.Split(d.text, "\n")[s.line-1], "`"+strings.TrimSpace(s.code))
		at = fmt.Sprintf("//line %s:%d:%d\n", d.path, s.line, len(strings.Split(d.text, "\n")[s.line-1])-len(before)-len(strings.TrimSpace(s.code))+1)
	}
	texts := []string{
		c.header + "func _() {\n" + at + code + "\n}",
		c.header + "func _() error {\n" + at + code + "\nreturn nil }",
		c.header + at + code,
	}
	if s.inline {
		texts = append(texts, c.header+"var _ = (\n"+at+strings.TrimSpace(code)+")") // a type assertion, a conversion
	}
	if s.isProgram() {
		texts = []string{at + code}
	}
	var first form
	for i, text := range texts {
		f := c.checkForm(d, text)
		if len(f.errs) == 0 {
			return f
		}
		if i == 0 || f.parsed() && !first.parsed() {
			first = f
		}
	}
	return first
}

// checkForm checks a file. Its own declarations hide those of the preludes.
func (c *compiler) checkForm(d document, text string) form {
	file, err := parser.ParseFile(c.files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return form{errs: []error{err}}
	}
	f := form{text: text, file: file, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}}
	if file.Name.Name == "snippet" {
		if f.preludes, err = c.preludes(d, declared(file)); err != nil {
			f.errs = append(f.errs, err)
			return f
		}
	}
	config := types.Config{Importer: c.importer, Error: func(err error) {
		var e types.Error
		if errors.As(err, &e) && !e.Soft {
			f.errs = append(f.errs, e)
		}
	}}
	pkg, _ := config.Check("snippet", c.files, append([]*ast.File{file}, f.preludes...), f.info)
	f.scope = pkg.Scope()
	return f
}

// preludes are what a document's snippets use without declaring it, less what is hidden.
func (c *compiler) preludes(d document, hidden map[string]bool) (files []*ast.File, err error) {
	for _, name := range d.preludes() {
		prelude, err := parser.ParseFile(c.files, filepath.Join("testdata", name+".go"), nil, parser.SkipObjectResolution)
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		names := declared(prelude)
		hide(prelude, hidden)
		for name := range names {
			hidden[name] = true
		}
		prelude.Name.Name = "snippet"
		files = append(files, prelude)
	}
	return files, nil
}

// declared are the names that a file declares.
func declared(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			names[nameOf(decl)] = true
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				for _, name := range namesOf(spec) {
					names[name] = true
				}
			}
		}
	}
	return names
}

// nameOf is a function's name, and a method's type with its name.
func nameOf(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	return types.ExprString(decl.Recv.List[0].Type) + "." + decl.Name.Name
}

func namesOf(spec ast.Spec) (names []string) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return []string{spec.Name.Name}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// hide takes the declarations of the names out of a file.
func hide(file *ast.File, names map[string]bool) {
	var kept []ast.Decl
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			receiver, _, _ := strings.Cut(strings.TrimPrefix(nameOf(decl), "*"), ".")
			if names[nameOf(decl)] || decl.Recv != nil && names[receiver] {
				continue
			}
		case *ast.GenDecl:
			if decl.Tok == token.IMPORT {
				break
			}
			var specs []ast.Spec
			for _, spec := range decl.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range value.Names {
						if names[name.Name] {
							name.Name = "_"
						}
					}
				} else if typ, ok := spec.(*ast.TypeSpec); ok && names[typ.Name.Name] {
					continue
				}
				specs = append(specs, spec)
			}
			decl.Specs = specs
		}
		kept = append(kept, decl)
	}
	file.Decls = kept
}
