package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// mutant is one thing that a file says otherwise while it is switched on.
type mutant struct {
	number int // from 1
	file   string
	line   int
	what   string
}

// String is its name. It has no line number, for lines move.
func (m mutant) String() string { return m.file + " " + m.what }

// source is a file with its mutants, and what is put before and behind the bytes of its text for them.
type source struct {
	name           string
	text           []byte
	files          *token.FileSet
	first          int // how many mutants other files have
	mutants        []mutant
	before, behind map[int]string
}

// sourcesOf are the files of some folders, with all their mutants.
func sourcesOf(folders []string) ([]*source, error) {
	var all []*source
	count := 0
	for _, folder := range folders {
		names, err := filepath.Glob(filepath.Join(filepath.FromSlash(folder), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name) //nolint:gosec // it is a file of this repository
			if err != nil {
				return nil, err
			}
			s, err := sourceOf(filepath.ToSlash(name), text, count)
			if err != nil {
				return nil, err
			}
			all, count = append(all, s), count+len(s.mutants)
		}
	}
	return all, nil
}

// sourceOf finds the mutants of a file. Of two that look alike the later says which it is.
func sourceOf(name string, text []byte, first int) (*source, error) {
	s := &source{name: name, text: text, files: token.NewFileSet(), first: first, before: map[int]string{}, behind: map[int]string{}}
	parsed, err := parser.ParseFile(s.files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		s.mutate(n)
		return true
	})
	alike := map[string]int{}
	for i, m := range s.mutants {
		if alike[m.what]++; alike[m.what] > 1 {
			s.mutants[i].what += fmt.Sprintf(" #%d", alike[m.what])
		}
	}
	return s, nil
}

// mutate adds the mutants of one node. The text asks for a mutant only where that would change the outcome.
func (s *source) mutate(n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr: // one without its left side, one without its right
		for i, side := range []ast.Expr{n.X, n.Y} {
			what := fmt.Sprintf("without the %s of %s", [2]string{"left", "right"}[i], textOf(n))
			if n.Op == token.LAND {
				s.wrap(side, "((", ") || %s)", what)
			}
			if n.Op == token.LOR {
				s.wrap(side, "((", ") && !%s)", what)
			}
		}
	case *ast.IfStmt: // few errors of the server can be made at will, so all of them stay
		if what := textOf(n.Cond); what != "err != nil" {
			s.wrap(n.Cond, "", " || %s", "always if "+what)
			s.wrap(n.Cond, "(", ") && !%s", "never if "+what)
		}
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			for _, when := range clause.(*ast.CaseClause).List { //nolint:forcetypeassert // a switch has no others
				if n.Tag == nil {
					s.wrap(when, "(", ") && !%s", "never "+textOf(when))
				}
			}
		}
	case *ast.ReturnStmt:
		for _, result := range n.Results {
			if isBoolean(result) {
				s.wrap(result, "", " != %s", "not "+textOf(n))
			}
		}
	case *ast.BlockStmt:
		s.leaveOut(n.List)
	case *ast.CaseClause:
		s.leaveOut(n.Body)
	}
}

// leaveOut adds a mutant for each statement that can be left out.
func (s *source) leaveOut(statements []ast.Stmt) {
	for _, n := range statements {
		if isSkippable(n) {
			s.wrap(n, "if !%s { ", " }", "without "+textOf(n))
		}
	}
}

// wrap adds a mutant: the text that is put around a node, in which %s asks whether it is on.
func (s *source) wrap(n ast.Node, before, behind, what string) {
	m := mutant{number: s.first + len(s.mutants) + 1, file: s.name, line: s.files.Position(n.Pos()).Line, what: what}
	s.mutants = append(s.mutants, m)
	on := "mutantOn(" + strconv.Itoa(m.number) + ")"
	from, to := s.files.Position(n.Pos()).Offset, s.files.Position(n.End()).Offset
	s.before[from] += strings.Replace(before, "%s", on, 1)
	s.behind[to] = strings.Replace(behind, "%s", on, 1) + s.behind[to]
}

// mutated is the text with all mutants in it.
func (s *source) mutated() []byte {
	var out bytes.Buffer
	for i, char := range s.text {
		out.WriteString(s.behind[i])
		out.WriteString(s.before[i])
		out.WriteByte(char)
	}
	return out.Bytes()
}

func isBoolean(n ast.Expr) bool {
	name, ok := n.(*ast.Ident)
	return ok && (name.Name == "true" || name.Name == "false")
}

// needed are calls that stay. Without a panic there may be no return, without an unlock there is no end, and without what writes
// to b there is no SQL.
var needed = regexp.MustCompile(`^b\.\w+$|\b(Lock|Unlock|RLock|RUnlock|panic)$`)

// isSkippable reports whether a mutant may leave out a statement: a call, or one that sets a flag.
func isSkippable(n ast.Stmt) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		return len(n.Lhs) == 1 && n.Tok == token.ASSIGN && isBoolean(n.Rhs[0])
	case *ast.ExprStmt:
		call, ok := n.X.(*ast.CallExpr)
		return ok && !needed.MatchString(textOf(call.Fun))
	}
	return false
}

// textOf is an expression on one line.
func textOf(n ast.Node) string {
	var b bytes.Buffer
	_ = printer.Fprint(&b, token.NewFileSet(), n)
	return strings.Join(strings.Fields(b.String()), " ")
}
