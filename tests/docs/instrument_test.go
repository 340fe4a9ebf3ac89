package docs

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// instrumented is the statements of a snippet, each followed by a look at what it gave: runner.Check and runner.Use say what
// is looked for. Nothing is written on lines of its own, so that the lines stay those of the document.
type instrumented struct {
	c     *compiler
	f     form
	edits []edit
}

type edit struct {
	from, to int // offsets in the form's text
	text     string
}

func (i *instrumented) insert(at token.Pos, format string, args ...any) {
	i.replace(at, at, fmt.Sprintf(format, args...))
}

func (i *instrumented) replace(from, to token.Pos, text string) {
	i.edits = append(i.edits, edit{i.c.files.Position(from).Offset, i.c.files.Position(to).Offset, text})
}

// between is the text between two positions with its edits.
func (i *instrumented) between(from, to token.Pos) string {
	slices.SortStableFunc(i.edits, func(a, b edit) int { return a.from - b.from })
	var out strings.Builder
	at, end := i.c.files.Position(from).Offset, i.c.files.Position(to).Offset
	for _, e := range i.edits {
		out.WriteString(i.f.text[at:e.from] + e.text)
		at = e.to
	}
	out.WriteString(i.f.text[at:end])
	return out.String()
}

// function is a snippet as a function of no arguments, with the declarations it needs beside it.
func (c *compiler) function(f form, name string) (string, error) {
	i := &instrumented{c: c, f: f}
	ast.Inspect(f.file, i.fillElided)
	last := f.file.Decls[len(f.file.Decls)-1]
	switch last := last.(type) {
	case *ast.FuncDecl:
		if last.Name.Name != "_" {
			break
		}
		for _, statement := range last.Body.List {
			i.statement(statement)
		}
		body := i.between(last.Body.Lbrace, last.Body.End())
		if last.Type.Results != nil {
			return "func " + name + "() { runner.Check(func() error " + body + "()) }\n", nil
		}
		return "func " + name + "() " + body + "\n", nil
	case *ast.GenDecl:
		value, ok := last.Specs[0].(*ast.ValueSpec)
		if !ok || value.Names[0].Name != "_" {
			break
		}
		return "func " + name + "() { runner.Use" + i.between(value.Values[0].Pos(), value.Values[0].End()) + " }\n", nil
	}
	first := f.file.Decls[slices.IndexFunc(f.file.Decls, isNoImport)]
	calls := ""
	for _, decl := range f.file.Decls {
		call, err := c.callOf(f, decl)
		if err != nil {
			return "", err
		}
		calls += call
	}
	at := i.c.files.Position(first.Pos())
	return fmt.Sprintf("//line %s:%d\n%s\nfunc %s() {\n%s}\n", at.Filename, at.Line, i.between(first.Pos(), f.file.End()), name, calls), nil
}

func isNoImport(decl ast.Decl) bool {
	g, ok := decl.(*ast.GenDecl)
	return !ok || g.Tok != token.IMPORT
}

// isDeclarations holds for a snippet with functions, which are not declared in a function.
func (f form) isDeclarations() bool {
	return slices.ContainsFunc(f.file.Decls, func(decl ast.Decl) bool {
		function, ok := decl.(*ast.FuncDecl)
		return ok && function.Name.Name != "_"
	})
}

// statement has what a statement gives looked at.
func (i *instrumented) statement(statement ast.Stmt) {
	switch s := statement.(type) {
	case *ast.ExprStmt:
		if !i.f.info.Types[s.X].IsVoid() {
			i.insert(s.Pos(), "runner.Use(")
			i.insert(s.End(), ")")
		}
	case *ast.DeferStmt:
		if !i.f.info.Types[s.Call].IsVoid() {
			i.insert(s.Call.Pos(), "func() { runner.Check(")
			i.insert(s.Call.End(), ") }()")
		}
	case *ast.AssignStmt:
		for _, to := range s.Lhs {
			if name, ok := to.(*ast.Ident); ok && name.Name != "_" {
				i.insert(s.End(), "; runner.Check(%s)", name.Name)
			}
		}
	case *ast.DeclStmt:
		for _, spec := range s.Decl.(*ast.GenDecl).Specs {
			i.declaration(s, spec)
		}
	case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.BlockStmt:
		i.insert(s.End(), "; runner.Check(err)")
	}
}

func (i *instrumented) declaration(s *ast.DeclStmt, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if len(spec.Values) > 0 {
				i.insert(s.End(), "; runner.Check(%s)", name.Name)
			} else {
				i.insert(s.End(), "; _ = %s", name.Name)
			}
		}
	case *ast.TypeSpec:
		if fields, ok := spec.Type.(*ast.StructType); ok && spec.TypeParams == nil && hasID(fields) {
			i.insert(s.End(), "; runner.Model[%s]()", spec.Name.Name)
		}
	}
}

func hasID(s *ast.StructType) bool {
	return slices.ContainsFunc(s.Fields.List, func(field *ast.Field) bool {
		return slices.ContainsFunc(field.Names, func(name *ast.Ident) bool { return name.Name == "ID" })
	})
}

// fillElided lets a function whose body is an ellipsis return nothing, or zeros.
func (i *instrumented) fillElided(node ast.Node) bool {
	var function *ast.FuncType
	var body *ast.BlockStmt
	switch node := node.(type) {
	case *ast.FuncLit:
		function, body = node.Type, node.Body
	case *ast.FuncDecl:
		function, body = node.Type, node.Body
	}
	if body == nil || len(body.List) != 1 || !isElided(body.List[0]) {
		return true
	}
	var zeros []string
	if function.Results != nil {
		for _, result := range function.Results.List {
			for range max(1, len(result.Names)) {
				zeros = append(zeros, "*new("+types.ExprString(result.Type)+")")
			}
		}
	}
	i.replace(body.List[0].Pos(), body.List[0].End(), "return "+strings.Join(zeros, ", "))
	return false
}

func isElided(statement ast.Stmt) bool {
	expression, ok := statement.(*ast.ExprStmt)
	return ok && types.ExprString(expression.X) == `panic("…")`
}

// callOf calls a function that is declared, with a test's t and the variables of the preludes that its parameters are named as.
func (c *compiler) callOf(f form, decl ast.Decl) (string, error) {
	function, ok := decl.(*ast.FuncDecl)
	if !ok || function.Recv != nil || function.Type.TypeParams != nil {
		return "", nil
	}
	at := c.files.Position(function.Pos())
	var args []string
	for _, param := range function.Type.Params.List {
		for _, name := range param.Names {
			variable, _ := f.scope.Lookup(name.Name).(*types.Var)
			switch {
			case types.ExprString(param.Type) == "*testing.T":
				args = append(args, "runner.Here().T")
			case variable != nil && types.Identical(variable.Type(), f.info.Types[param.Type].Type):
				args = append(args, name.Name)
			default:
				return "", fmt.Errorf("%s:%d: %s is not run: no variable of a prelude is its %s", at.Filename, at.Line, function.Name.Name, name.Name)
			}
		}
	}
	call := function.Name.Name + "(" + strings.Join(args, ", ") + ")"
	if function.Type.Results != nil {
		call = "runner.Use(" + call + ")"
	}
	return fmt.Sprintf("//line %s:%d\n%s\n", at.Filename, at.Line, call), nil
}
