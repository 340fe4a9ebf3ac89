package code

import (
	"fmt"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// New makes an analyzer of what find reports, for packages that name GORM or gormlock. Analyzers of one package take turns,
// for what one of them found out serves the next. A name is a heading of docs/gormlockvet.md.
func New(name, doc string, find func(pass *analysis.Pass, p *Package)) *analysis.Analyzer {
	return NewInModels(name, doc, func(pass *analysis.Pass, p *Package) {
		if p.concerned() {
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
	if !pos.IsValid() || p.Source.InTest(pos) || p.Source.Comments.Silences(pass.Fset, pos, name) {
		return
	}
	d := analysis.Diagnostic{Pos: pos, Category: name, Message: name + ": " + fmt.Sprintf(format, args...)}
	if fix != nil {
		d.SuggestedFixes = []analysis.SuggestedFix{*fix}
	}
	pass.Report(d)
}

// Replace is a fix of one change.
func Replace(text string, from, to token.Pos, with string) *analysis.SuggestedFix {
	return &analysis.SuggestedFix{Message: text, TextEdits: []analysis.TextEdit{{Pos: from, End: to, NewText: []byte(with)}}}
}
