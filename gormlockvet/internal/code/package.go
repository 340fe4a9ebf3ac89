// Package code reads a package once, for all findings. It makes what follows values, statements and functions that are
// handed over, and finds out what the functions and models of the package are to those who use them.
package code

import (
	"go/types"
	"reflect"
	"strings"
	"sync"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/effects"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/handovers"
	"github.com/gormlock/gormlock/gormlockvet/internal/interfaces"
	"github.com/gormlock/gormlock/gormlockvet/internal/opens"
	"github.com/gormlock/gormlock/gormlockvet/internal/source"
	"github.com/gormlock/gormlock/gormlockvet/internal/statements"
)

// Analyzer reads a package for the findings. Of one that names neither GORM nor gormlock it reads the models alone.
var Analyzer = &analysis.Analyzer{
	Name:       "gormlockcode",
	Doc:        "read what a package does with GORM and gormlock, for the other analyzers",
	Run:        run,
	ResultType: reflect.TypeFor[*Package](),
	FactTypes:  []analysis.Fact{(*facts.Summary)(nil), (*facts.Program)(nil)},
}

// Package is what the findings know of a package. One that does nothing they are about has only its Source and Program.
type Package struct {
	Source     *source.Source
	Program    *facts.Program  // of this package and those below it
	Funcs      []*ssa.Function // those of the source, function literals included
	Known      *facts.Known
	Variables  *flow.Variables
	Chains     *flow.Chains
	Order      *flow.Order
	Statements *statements.Statements
	Carries    *statements.Carries
	Handovers  *handovers.Handovers

	turn sync.Mutex
}

func run(pass *analysis.Pass) (any, error) {
	p := &Package{Source: source.Read(pass), Program: facts.Below(pass)}
	program := programReader{Package: p, pass: pass}
	if !concerns(pass, p.Program) {
		effects.Export(pass)
		program.export()
		return p, nil
	}
	p.read(pass)
	program.opens = opens.New(pass, p.Chains, p.Order, p.Known)
	newSummarizer(pass, p, program.opens).summarize(interfaces.Implementations(pass.Pkg.Scope()))
	p.Handovers.Find()
	p.Known.Export()
	program.export()
	return p, nil
}

// read makes what follows the values of the package, each part of those above it.
func (p *Package) read(pass *analysis.Pass) {
	p.Funcs, p.Known = build(pass), facts.NewKnown(pass)
	p.Variables = flow.NewVariables(p.Funcs)
	p.Chains = flow.NewChains(p.Variables, p.Known)
	p.Order = flow.NewOrder(p.Funcs, p.Chains, p.Known)
	p.Statements = statements.New(p.Chains)
	p.Carries = statements.NewCarries(p.Variables, p.Chains, p.Known, p.Statements)
	p.Handovers = handovers.New(p.Funcs, p.Variables, p.Chains, p.Order, p.Known, p.Carries)
}

// concerned reports whether the package does anything that the findings are about.
func (p *Package) concerned() bool { return p.Known != nil }

// concerns reports whether a package can do anything that the findings are about: it names GORM or gormlock, calls
// packages that do, sends SQL in a program that has tagged models, or is the program itself.
func concerns(pass *analysis.Pass, below *facts.Program) bool {
	for _, imported := range pass.Pkg.Imports() {
		switch path := gormapi.PathOf(imported); {
		case path == gormapi.Gorm, gormapi.OurPackage(path):
			return true
		case path == "database/sql", strings.HasPrefix(path, "github.com/jackc/pgx/"):
			if len(below.Tables) > 0 {
				return true
			}
		default:
			if direct := new(facts.Program); pass.ImportPackageFact(imported, direct) && direct.Names {
				return true
			}
		}
	}
	return pass.Pkg.Name() == "main" && len(below.Tables) > 0
}

// namesGorm reports whether the package itself imports GORM or gormlock.
func namesGorm(pkg *types.Package) bool {
	path := gormapi.PathOf(pkg)
	if strings.HasPrefix(path, "gorm.io/") || gormapi.OurPackage(path) {
		return false
	}
	for _, imported := range pkg.Imports() {
		if path := gormapi.PathOf(imported); path == gormapi.Gorm || gormapi.OurPackage(path) {
			return true
		}
	}
	return false
}
