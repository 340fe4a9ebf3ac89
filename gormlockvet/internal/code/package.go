// Package code reads the functions of a package: which *gorm.DB a statement runs on and what was put on it before, which
// function is handed a transaction, and what a function that is called does, in other packages too.
package code

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"strings"
	"sync"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/silence"
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

// TestFiles lets the findings of files that end in _test.go be reported too. Tests play the rival, drop errors and hold
// locks on purpose.
var TestFiles = false

// Package is what the findings know of a package.
type Package struct {
	Pass     *analysis.Pass
	Funcs    []*ssa.Function // those of the source, function literals included
	Comments *silence.Comments
	Program  *facts.Program // of this package and those below it

	Known      *facts.Known // nil in a package that does nothing the findings are about
	Variables  *flow.Variables
	Chains     *flow.Chains
	Order      *flow.Order
	Statements *statements.Statements
	Carries    *statements.Carries
	turn       sync.Mutex
	handovers  []*Handover
	models     map[*types.TypeName]bool
}

func run(pass *analysis.Pass) (any, error) {
	p := &Package{Pass: pass, Comments: silence.Read(pass), Program: facts.Below(pass)}
	if !p.concerns() {
		exportEffects(pass)
		p.exportProgram()
		return p, nil
	}
	p.Funcs, p.Known = build(pass), facts.NewKnown(pass)
	p.Variables = flow.NewVariables(p.Funcs)
	p.Chains = flow.NewChains(p.Variables, p.Known)
	p.Order = flow.NewOrder(p.Funcs, p.Chains, p.Known)
	p.Statements = statements.New(p.Chains)
	p.Carries = statements.NewCarries(p.Variables, p.Chains, p.Known, p.Statements)
	p.summarize()
	p.exportProgram()
	return p, nil
}

// concerns reports whether a package can do anything that the findings are about: it names GORM or gormlock, calls
// packages that do, sends SQL in a program that has tagged models, or is the program itself.
func (p *Package) concerns() bool {
	for _, imported := range p.Pass.Pkg.Imports() {
		switch path := gormapi.PathOf(imported); {
		case path == gormapi.Gorm, gormapi.OurPackage(path):
			return true
		case path == "database/sql", strings.HasPrefix(path, "github.com/jackc/pgx/"):
			if len(p.Program.Tables) > 0 {
				return true
			}
		default:
			if below := new(facts.Program); p.Pass.ImportPackageFact(imported, below) && below.Names {
				return true
			}
		}
	}
	return p.Pass.Pkg.Name() == "main" && len(p.Program.Tables) > 0
}

// namesGorm reports whether the package itself imports GORM or gormlock.
func (p *Package) namesGorm() bool {
	path := gormapi.PathOf(p.Pass.Pkg)
	if strings.HasPrefix(path, "gorm.io/") || gormapi.OurPackage(path) {
		return false
	}
	for _, imported := range p.Pass.Pkg.Imports() {
		if path := gormapi.PathOf(imported); path == gormapi.Gorm || gormapi.OurPackage(path) {
			return true
		}
	}
	return false
}

// build makes the SSA form of the package, as buildssa does, which would make it of packages that do not matter too.
func build(pass *analysis.Pass) (funcs []*ssa.Function) {
	prog := ssa.NewProgram(pass.Fset, 0)
	for _, imported := range pass.Pkg.Imports() {
		prog.CreatePackage(imported, nil, nil, true)
	}
	built := prog.CreatePackage(pass.Pkg, pass.Files, pass.TypesInfo, false)
	built.Build()
	var add func(fn *ssa.Function)
	add = func(fn *ssa.Function) {
		funcs = append(funcs, fn)
		for _, literal := range fn.AnonFuncs {
			add(literal)
		}
	}
	for _, file := range pass.Files {
		for _, decl := range file.Decls {
			if decl, ok := decl.(*ast.FuncDecl); ok {
				if fn, ok := pass.TypesInfo.Defs[decl.Name].(*types.Func); ok && prog.FuncValue(fn) != nil {
					add(prog.FuncValue(fn))
				}
			}
		}
	}
	if initial := built.Func("init"); initial != nil { // makes the package's variables
		add(initial)
	}
	return funcs
}

// InTest reports whether a place is in a test's file whose findings are not wanted.
func (p *Package) InTest(pos token.Pos) bool {
	file := p.Pass.Fset.File(pos)
	return !TestFiles && file != nil && strings.HasSuffix(file.Name(), "_test.go")
}

// Imported reports whether the package imports path.
func (p *Package) Imported(path string) bool {
	for _, imported := range p.Pass.Pkg.Imports() {
		if gormapi.PathOf(imported) == path {
			return true
		}
	}
	return false
}
