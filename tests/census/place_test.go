package census

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// place is a seam: named by the function that it is in, for lines move.
type place struct {
	kind     string // session, table, copy or value
	file     string
	function string
	text     string
	nth      int // of those in the function that read the same
}

func (p place) String() string {
	again := ""
	if p.nth > 1 {
		again = fmt.Sprintf(" (%d)", p.nth)
	}
	return fmt.Sprintf("%s %s %s: %s%s", p.kind, p.file, p.function, p.text, again)
}

// placesIn are the seams in one package below root.
func placesIn(root, name string) ([]place, error) {
	entries, err := os.ReadDir(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	var all []place
	files := token.NewFileSet()
	for _, entry := range entries {
		if entry.IsDir() || !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, filepath.Join(root, name, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if function, ok := decl.(*ast.FuncDecl); ok && function.Body != nil {
				seen := finder{files: files, file: filepath.ToSlash(filepath.Join(name, entry.Name())), function: nameOf(function), count: map[string]int{}}
				seen.look(function)
				all = append(all, seen.found...)
			}
		}
	}
	return all, nil
}

// finder looks through one function.
type finder struct {
	files          *token.FileSet
	file, function string
	count          map[string]int
	found          []place
}

func (f *finder) look(function *ast.FuncDecl) {
	if result := valueOf(function); result != nil {
		f.add("value", result)
	}
	ast.Inspect(function.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			f.call(n)
		case *ast.CompositeLit:
			if name := last(n.Type); name == "DB" {
				f.add("session", n)
			}
		}
		return true
	})
}

func (f *finder) call(call *ast.CallExpr) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	of, _ := selector.X.(*ast.Ident)
	switch name := selector.Sel.Name; {
	case name == "Session":
		f.add("session", withoutReceiver(call))
	case name == "Table", name == "Model" && len(call.Args) == 1 && last(call.Args[0]) == "nil":
		f.add("table", withoutReceiver(call))
	case name == "Set" && len(call.Args) == 1 && (of == nil || of.Name != "clause"), of != nil && of.Name == "reflect" && (name == "Append" || name == "Copy"):
		f.add("copy", call)
	}
}

// withoutReceiver is a call of a method as the end of a chain, whatever comes before.
func withoutReceiver(call *ast.CallExpr) *ast.CallExpr {
	selector, _ := call.Fun.(*ast.SelectorExpr)
	return &ast.CallExpr{Fun: selector.Sel, Args: call.Args}
}

func (f *finder) add(kind string, n ast.Node) {
	var b bytes.Buffer
	_ = printer.Fprint(&b, token.NewFileSet(), n)
	text := strings.Join(strings.Fields(b.String()), " ")
	f.count[kind+text]++
	f.found = append(f.found, place{kind, f.file, f.function, text, f.count[kind+text]})
}

// valueOf is the result of a method of the generics API that is a row, handed over by value.
func valueOf(function *ast.FuncDecl) ast.Node {
	if function.Recv == nil || function.Type.Results == nil {
		return nil
	}
	for _, result := range function.Type.Results.List {
		if last(result.Type) == "T" {
			return result.Type
		}
	}
	return nil
}

// last is the last name of an expression.
func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.ArrayType:
		return last(e.Elt)
	case *ast.StarExpr:
		return last(e.X)
	}
	return ""
}

// nameOf is the function's name, with the type whose method it is.
func nameOf(function *ast.FuncDecl) string {
	if function.Recv == nil || len(function.Recv.List) == 0 {
		return function.Name.Name
	}
	of := function.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	return last(of) + "." + function.Name.Name
}
