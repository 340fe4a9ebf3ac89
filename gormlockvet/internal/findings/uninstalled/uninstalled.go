// Package uninstalled finds programs with tagged models whose db never meets the plugin.
package uninstalled

import (
	"golang.org/x/tools/go/analysis"

	"github.com/gormlock/gormlock/gormlockvet/internal/code"
	"github.com/gormlock/gormlock/gormlockvet/internal/opens"
)

// Analyzer is the finding.
var Analyzer = code.New("uninstalled", "find a gorm.Open that never meets db.Use(gormlock.New())\n\n"+
	"Without the plugin a tag is only text: the model is written without a check, and nothing says so. Reported in package\n"+
	"main, which alone knows the whole program.", run)

func run(pass *analysis.Pass, p *code.Package) {
	if pass.Pkg.Name() != "main" || len(p.Program.Tables) == 0 || !p.Program.Writes {
		return
	}
	opened := opens.New(pass, p.Chains, p.Order, p.Known)
	var all []opens.At
	for _, fn := range p.Funcs {
		if fn.Parent() == nil {
			all = append(all, opened.In(fn)...)
		}
	}
	reported := map[string]bool{}
	for _, enter := range []bool{true, false} { // reported where it is opened, and not once more where that is called
		for _, open := range all {
			if open.Enter != enter || reported[open.Where] || open.Kept && p.Program.Installs {
				continue
			}
			reported[open.Where] = true
			which := "this db"
			if !open.Here {
				which = "the db opened at " + open.Where
			}
			p.Report(pass, open.Pos, "%s never meets db.Use(gormlock.New()): the tags of %s are only text to it, and stale writes overwrite",
				which, p.Program.Tables[0].Model)
		}
	}
}
