package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// mutant is one thing changed: while it is switched on, what stands between two places in a file reads otherwise.
type mutant struct {
	number       int // from 1
	folder, file string
	line         int
	what         string
	from, to     int
	before       string // what is put before and behind it, with the number for %d
	after        string
}

func (m mutant) String() string { return m.file + " " + m.what }

// mutantsOf are all mutants of some packages.
func mutantsOf(folders []string) ([]mutant, error) {
	var all []mutant
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(folder), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			found, err := mutantsIn(folder, file)
			if err != nil {
				return nil, err
			}
			for _, m := range found {
				m.number = len(all) + 1
				all = append(all, m)
			}
		}
	}
	return all, nil
}

func mutantsIn(folder, file string) ([]mutant, error) {
	source, err := os.ReadFile(file) //nolint:gosec // it is a file of this repository
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	at := func(p token.Pos) int { return files.Position(p).Offset }
	read := func(n ast.Node) string { return string(source[at(n.Pos()):at(n.End())]) }
	var all []mutant
	add := func(n ast.Node, before, after, what string) {
		all = append(all, mutant{
			folder: folder, file: filepath.ToSlash(file), line: files.Position(n.Pos()).Line, what: what,
			from: at(n.Pos()), to: at(n.End()), before: before, after: after,
		})
	}
	// otherwise makes a mutant in which the condition n reads so.
	otherwise := func(n ast.Expr, text, what string) {
		add(n, "mutated(%d, func() bool { return "+text+" }, func() bool { return ", " })", what)
	}
	// without makes a mutant that leaves out the statement n.
	without := func(n ast.Stmt) {
		add(n, "if !switchedOn(%d) { ", " }", "without "+textOf(n))
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				otherwise(n, read(n.X), "without the right of "+textOf(n))
				otherwise(n, read(n.Y), "without the left of "+textOf(n))
			}
		case *ast.IfStmt:
			if n.Init == nil {
				otherwise(n.Cond, "!("+read(n.Cond)+")", "if not "+textOf(n.Cond))
			}
		case *ast.AssignStmt:
			if len(n.Lhs) == 1 && n.Tok == token.ASSIGN {
				if value, ok := n.Rhs[0].(*ast.Ident); ok && (value.Name == "true" || value.Name == "false") {
					without(n)
				}
			}
		case *ast.ExprStmt:
			if skippable(n) {
				without(n)
			}
		}
		return true
	})
	return all, nil
}

// skipped are the calls whose absence only a test can notice.
var skipped = map[string]bool{
	"Record": true, "Wrote": true, "Doom": true, "Leave": true, "Keep": true, "Restore": true, "RestoreRow": true, "Undo": true, "remember": true, "keepWritten": true,
	"follow": true, "give": true, "want": true, "wantWhole": true, "Write": true, "undo": true, "putBack": true, "collect": true, "restore": true, "refuse": true,
	"doomWithParent": true, "wantAssigned": true, "wantUnheld": true, "wantStored": true, "wantRows": true, "followCreated": true, "followUpsert": true, "addKeys": true, "KeepRowsRead": true,
	"serializationFailure": true, "weigh": true, "arm": true,
}

func skippable(n *ast.ExprStmt) bool {
	call, ok := n.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	switch called := call.Fun.(type) {
	case *ast.Ident:
		return skipped[called.Name]
	case *ast.SelectorExpr:
		return skipped[called.Sel.Name]
	}
	return false
}

// textOf is an expression on one line.
func textOf(n ast.Node) string {
	var b bytes.Buffer
	_ = printer.Fprint(&b, token.NewFileSet(), n)
	return strings.Join(strings.Fields(b.String()), " ")
}
