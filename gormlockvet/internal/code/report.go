package code

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/astutil"
)

// New makes an analyzer of what find reports, for packages that name GORM or gormlock. Analyzers of one package take turns,
// for what one of them found out serves the next. A name is a heading of docs/gormlockvet.md.
func New(name, doc string, find func(pass *analysis.Pass, p *Package)) *analysis.Analyzer {
	return NewInModels(name, doc, func(pass *analysis.Pass, p *Package) {
		if p.Known != nil {
			find(pass, p)
		}
	})
}

// NewInModels is New for what looks at types and comments alone: packages of models often do not import GORM.
func NewInModels(name, doc string, find func(pass *analysis.Pass, p *Package)) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name:     Prefix + name,
		Doc:      doc,
		URL:      "https://github.com/gormlock/gormlock/blob/main/docs/gormlockvet.md#" + name,
		Requires: []*analysis.Analyzer{Analyzer},
		Run: func(pass *analysis.Pass) (any, error) {
			p := pass.ResultOf[Analyzer].(*Package)
			p.turn.Lock()
			defer p.turn.Unlock()
			find(pass, p)
			return nil, nil
		},
	}
}

// Prefix begins the names of all analyzers, so that their flags meet no others. Findings go by what comes after it.
const Prefix = "gormlock"

// Finding returns the name of what an analyzer finds.
func Finding(a *analysis.Analyzer) string { return strings.TrimPrefix(a.Name, Prefix) }

// Report tells of a finding, unless a comment silences it or it is in a test. The name of the finding comes first, for
// that is what a comment has to name.
func (p *Package) Report(pass *analysis.Pass, pos token.Pos, format string, args ...any) {
	p.ReportFix(pass, pos, nil, format, args...)
}

// ReportFix is Report with a change that cures it.
func (p *Package) ReportFix(pass *analysis.Pass, pos token.Pos, fix *analysis.SuggestedFix, format string, args ...any) {
	name := Finding(pass.Analyzer)
	if !pos.IsValid() || p.InTest(pos) || p.Comments.Silences(pass.Fset, pos, name) {
		return
	}
	d := analysis.Diagnostic{Pos: pos, Category: name, Message: name + ": " + fmt.Sprintf(format, args...)}
	if fix != nil {
		d.SuggestedFixes = []analysis.SuggestedFix{*fix}
	}
	pass.Report(d)
}

// PathTo returns the nodes around a place, the innermost first.
func (p *Package) PathTo(pos token.Pos) []ast.Node {
	for _, file := range p.Pass.Files {
		if file.FileStart <= pos && pos < file.FileEnd {
			path, _ := astutil.PathEnclosingInterval(file, pos, pos)
			return path
		}
	}
	return nil
}

// CallAt returns the call whose parenthesis opens at pos, as the positions of SSA have it.
func (p *Package) CallAt(pos token.Pos) *ast.CallExpr {
	for _, n := range p.PathTo(pos) {
		if call, ok := n.(*ast.CallExpr); ok && call.Lparen == pos {
			return call
		}
	}
	return nil
}

// Source returns an expression as it is written, on one line where it has several.
func (p *Package) Source(n ast.Node) string {
	var text bytes.Buffer
	if err := format.Node(&text, p.Pass.Fset, n); err != nil {
		return ""
	}
	return text.String()
}

// Replace is a fix of one change.
func Replace(text string, from, to token.Pos, with string) *analysis.SuggestedFix {
	return &analysis.SuggestedFix{Message: text, TextEdits: []analysis.TextEdit{{Pos: from, End: to, NewText: []byte(with)}}}
}
