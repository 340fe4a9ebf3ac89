// Package source has the text of a package, for findings that name a place in it or rewrite one.
package source

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/astutil"

	"github.com/gormlock/gormlock/gormlockvet/internal/silence"
)

// TestFiles lets the findings of files that end in _test.go be reported too. Tests play the rival, drop errors and hold
// locks on purpose.
var TestFiles = false

// Source is the text of a package: its files, and the comments in them that silence findings.
type Source struct {
	Comments *silence.Comments
	pass     *analysis.Pass
}

// Read reads the comments of a package.
func Read(pass *analysis.Pass) *Source { return &Source{Comments: silence.Read(pass), pass: pass} }

// InTest reports whether a place is in a test's file whose findings are not wanted.
func (s *Source) InTest(pos token.Pos) bool {
	file := s.pass.Fset.File(pos)
	return !TestFiles && file != nil && strings.HasSuffix(file.Name(), "_test.go")
}

// PathTo returns the nodes around a place, the innermost first.
func (s *Source) PathTo(pos token.Pos) []ast.Node {
	for _, file := range s.pass.Files {
		if file.FileStart <= pos && pos < file.FileEnd {
			path, _ := astutil.PathEnclosingInterval(file, pos, pos)
			return path
		}
	}
	return nil
}

// CallAt returns the call whose parenthesis opens at pos, as the positions of SSA have it.
func (s *Source) CallAt(pos token.Pos) *ast.CallExpr {
	for _, n := range s.PathTo(pos) {
		if call, ok := n.(*ast.CallExpr); ok && call.Lparen == pos {
			return call
		}
	}
	return nil
}

// Text returns an expression as it is written, on one line where it has several.
func (s *Source) Text(n ast.Node) string {
	var text bytes.Buffer
	if err := format.Node(&text, s.pass.Fset, n); err != nil {
		return ""
	}
	return text.String()
}
