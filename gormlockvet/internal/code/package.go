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

	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/silence"
)

// Analyzer reads a package for the findings. Of one that names neither GORM nor gormlock it reads the models alone.
var Analyzer = &analysis.Analyzer{
	Name:       "gormlockcode",
	Doc:        "read what a package does with GORM and gormlock, for the other analyzers",
	Run:        run,
	ResultType: reflect.TypeFor[*Package](),
	FactTypes:  []analysis.Fact{(*Summary)(nil), (*Program)(nil)},
}

// TestFiles lets the findings of files that end in _test.go be reported too. Tests play the rival, drop errors and hold
// locks on purpose.
var TestFiles = false

// Package is what the findings know of a package.
type Package struct {
	Pass     *analysis.Pass
	Funcs    []*ssa.Function // those of the source, function literals included
	Comments *silence.Comments
	Program  *Program // of this package and those below it

	turn      sync.Mutex
	chains    map[ssa.Value][]Chain
	stores    map[ssa.Value][]ssa.Value
	closures  map[*ssa.Function]*ssa.MakeClosure
	summaries map[*types.Func]*Summary
	handovers []*Handover
	models    map[*types.TypeName]bool
	globals   map[*ssa.Global][]ssa.Value
	scoping   map[*ssa.Function]bool
	sites     map[*ssa.Function]ssa.Instruction
}

func run(pass *analysis.Pass) (any, error) {
	p := &Package{Pass: pass, Comments: silence.Read(pass), Program: programBelow(pass)}
	if !p.concerns() {
		exportEffects(pass)
		p.exportProgram()
		return p, nil
	}
	p.chains, p.stores = map[ssa.Value][]Chain{}, map[ssa.Value][]ssa.Value{}
	p.closures, p.summaries = map[*ssa.Function]*ssa.MakeClosure{}, map[*types.Func]*Summary{}
	p.scoping = map[*ssa.Function]bool{}
	p.build()
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
			if below := new(Program); p.Pass.ImportPackageFact(imported, below) && below.Names {
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
func (p *Package) build() {
	prog := ssa.NewProgram(p.Pass.Fset, 0)
	for _, imported := range p.Pass.Pkg.Imports() {
		prog.CreatePackage(imported, nil, nil, true)
	}
	built := prog.CreatePackage(p.Pass.Pkg, p.Pass.Files, p.Pass.TypesInfo, false)
	built.Build()
	var add func(fn *ssa.Function)
	add = func(fn *ssa.Function) {
		p.Funcs = append(p.Funcs, fn)
		for _, literal := range fn.AnonFuncs {
			add(literal)
		}
	}
	for _, file := range p.Pass.Files {
		for _, decl := range file.Decls {
			if decl, ok := decl.(*ast.FuncDecl); ok {
				if fn, ok := p.Pass.TypesInfo.Defs[decl.Name].(*types.Func); ok && prog.FuncValue(fn) != nil {
					add(prog.FuncValue(fn))
				}
			}
		}
	}
	if initial := built.Func("init"); initial != nil { // makes the package's variables
		add(initial)
	}
	for _, fn := range p.Funcs {
		for instr := range instructions(fn) {
			if made, ok := instr.(*ssa.MakeClosure); ok {
				p.closures[made.Fn.(*ssa.Function)] = made
			}
		}
	}
}

func instructions(fn *ssa.Function) func(func(ssa.Instruction) bool) {
	return func(yield func(ssa.Instruction) bool) {
		for _, block := range fn.Blocks {
			for _, instr := range block.Instrs {
				if !yield(instr) {
					return
				}
			}
		}
	}
}

// Calls yields the calls of a function, go and defer statements included.
func Calls(fn *ssa.Function) func(func(ssa.CallInstruction) bool) {
	return func(yield func(ssa.CallInstruction) bool) {
		for instr := range instructions(fn) {
			if call, ok := instr.(ssa.CallInstruction); ok && !yield(call) {
				return
			}
		}
	}
}

// Instructions yields the instructions of a function.
func Instructions(fn *ssa.Function) func(func(ssa.Instruction) bool) { return instructions(fn) }

// Callee returns the function or the interface's method that a call names, nil for a call of a value.
func Callee(call ssa.CallInstruction) *types.Func {
	common := call.Common()
	if common.IsInvoke() {
		return common.Method
	}
	if fn := common.StaticCallee(); fn != nil {
		return declared(fn)
	}
	return nil
}

// declared returns what fn is in the source: of an instance the generic function, of a method value's wrapper the method.
func declared(fn *ssa.Function) *types.Func {
	if origin := fn.Origin(); origin != nil {
		fn = origin
	}
	object, _ := fn.Object().(*types.Func)
	if object != nil {
		object = object.Origin()
	}
	return object
}

// body returns the function that a function's value runs: of a method value's wrapper the method.
func (p *Package) body(fn *ssa.Function) *ssa.Function {
	if object := declared(fn); object != nil {
		if own := fn.Prog.FuncValue(object); own != nil {
			return own
		}
	}
	return fn
}

// Name returns the name of what a call calls.
func Name(call ssa.CallInstruction) gormapi.Func {
	if fn := Callee(call); fn != nil {
		return gormapi.NameOf(fn)
	}
	return gormapi.Func{}
}

// Args returns the arguments of a call without its receiver.
func Args(call ssa.CallInstruction) []ssa.Value {
	common := call.Common()
	if common.IsInvoke() || common.Signature().Recv() == nil || bound(call) != nil {
		return common.Args
	}
	if len(common.Args) == 0 {
		return nil
	}
	return common.Args[1:]
}

// Receiver returns the receiver of a method call, nil of any other.
func Receiver(call ssa.CallInstruction) ssa.Value {
	common := call.Common()
	switch {
	case common.IsInvoke():
		return common.Value
	case bound(call) != nil:
		return bound(call)
	case common.Signature().Recv() != nil && len(common.Args) > 0:
		return common.Args[0]
	}
	return nil
}

// bound returns the value of which a call calls a method's value.
func bound(call ssa.CallInstruction) ssa.Value {
	made, ok := call.Common().Value.(*ssa.MakeClosure)
	if ok && len(made.Bindings) == 1 && strings.HasSuffix(made.Fn.Name(), "$bound") {
		return made.Bindings[0]
	}
	return nil
}

// Variadic returns the elements of the slice that the compiler made of the last arguments, and whether it is one.
func Variadic(v ssa.Value) ([]ssa.Value, bool) {
	if constant, ok := v.(*ssa.Const); ok && constant.IsNil() {
		return nil, true
	}
	slice, ok := v.(*ssa.Slice)
	if !ok {
		return nil, false
	}
	array, ok := slice.X.(*ssa.Alloc)
	if !ok {
		return nil, false
	}
	var elements []ssa.Value
	for _, use := range *array.Referrers() {
		index, ok := use.(*ssa.IndexAddr)
		if !ok {
			continue
		}
		for _, use := range *index.Referrers() {
			if store, ok := use.(*ssa.Store); ok && store.Addr == index {
				elements = append(elements, store.Val)
			}
		}
	}
	return elements, true
}

// Bare returns a value without the conversions around it.
func Bare(v ssa.Value) ssa.Value {
	for {
		switch converted := v.(type) {
		case *ssa.MakeInterface:
			v = converted.X
		case *ssa.ChangeType:
			v = converted.X
		case *ssa.ChangeInterface:
			v = converted.X
		default:
			return v
		}
	}
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
