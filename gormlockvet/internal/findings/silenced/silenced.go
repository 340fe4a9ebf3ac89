// Package silenced finds comments that silence nothing, or give no reason.
package silenced

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/gormlock/gormlock/gormlockvet/internal/code"
)

// New returns the finding. It runs after all others, for they say which comments they needed.
func New(others []*analysis.Analyzer) *analysis.Analyzer {
	names := make([]string, len(others))
	for i, a := range others {
		names[i] = code.Finding(a)
	}
	a := code.NewInModels("silenced", "find comments that silence nothing, or give no reason\n\n"+
		"//gormlockvet:ignore NAME REASON silences the finding NAME on its line, or alone on a line on the next one.",
		func(pass *analysis.Pass, p *code.Package) { run(pass, p, names) })
	a.URL = strings.Replace(a.URL, "#silenced", "#silencing-a-finding", 1)
	a.Requires = append(a.Requires, others...)
	return a
}

func run(pass *analysis.Pass, p *code.Package, names []string) {
	report := func(pos analysis.Range, text string, fix *analysis.SuggestedFix) {
		d := analysis.Diagnostic{Pos: pos.Pos(), End: pos.End(), Category: "silenced", Message: "silenced: " + text}
		if fix != nil {
			d.SuggestedFixes = []analysis.SuggestedFix{*fix}
		}
		pass.Report(d)
	}
	for _, c := range p.Source.Comments.All() {
		if p.Source.InTest(c.At.Pos()) {
			continue
		}
		switch unknown := slices.IndexFunc(c.Names, func(name string) bool { return !slices.Contains(names, name) }); {
		case len(c.Names) == 0:
			report(c.At, "say which finding the comment silences, and why: //gormlockvet:ignore NAME REASON", nil)
		case unknown >= 0:
			report(c.At, "there is no finding "+c.Names[unknown]+": it is one of "+strings.Join(names, ", "), nil)
		case c.Reason == "":
			report(c.At, "say why: a comment that silences a finding gives a reason, and without one it silences nothing", nil)
		case len(c.Unused()) > 0:
			report(c.At, "nothing is found here by "+strings.Join(c.Unused(), ", ")+": remove the comment",
				code.Replace("take the comment away", c.At.Pos(), c.At.End(), ""))
		}
	}
}
