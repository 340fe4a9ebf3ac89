package code

import (
	"go/ast"
	"go/constant"
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/models"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// exportProgram adds what this package does. The fact has what the packages below say too: go vet hands on only facts of
// packages that the types of an importer lead to.
func (p *Package) exportProgram() {
	own := p.ownProgram()
	p.Program.Add(own)
	all := *p.Program
	if all.Names = own.Names; !all.Empty() {
		p.Pass.ExportPackageFact(&all)
	}
}

func (p *Package) ownProgram() *facts.Program {
	own := &facts.Program{Names: p.namesGorm()}
	if gormapi.OurPackage(gormapi.PathOf(p.Pass.Pkg)) {
		return own
	}
	for _, name := range p.Pass.Pkg.Scope().Names() {
		object, ok := p.Pass.Pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || object.IsAlias() || p.InTest(object.Pos()) {
			continue
		}
		if table, ok := p.tableOf(object); ok {
			own.Tables = append(own.Tables, table)
		}
	}
	for _, fn := range p.Funcs {
		if p.InTest(fn.Pos()) {
			continue
		}
		for instr := range calls.Instructions(fn) {
			if call, ok := instr.(ssa.CallInstruction); ok {
				p.addToProgram(own, call)
			}
			if store, ok := instr.(*ssa.Store); ok {
				addNaming(own, store)
			}
			own.Installs = own.Installs || p.handsInstaller(instr)
		}
	}
	return own
}

func (p *Package) tableOf(object *types.TypeName) (facts.Table, bool) {
	m := models.OfType(object.Type())
	if !m.Tagged() {
		return facts.Table{}, false
	}
	if named, ok := object.Type().(*types.Named); ok && named.TypeParams().Len() > 0 {
		return facts.Table{}, false
	}
	t := facts.Table{
		Model: object.Name(), Package: p.Pass.Pkg.Path(), Version: m.Version, Fence: m.Fence, Xmin: m.Xmin,
		Defaulted: m.Defaulted, Unversioned: m.Unversioned,
	}
	if len(m.Keys) == 0 {
		return t, false // it is there to be embedded
	}
	method, _, _ := types.LookupFieldOrMethod(object.Type(), true, p.Pass.Pkg, "TableName")
	fn, ok := method.(*types.Func)
	if !ok {
		t.Name = models.TableName(object.Name())
		return t, true
	}
	t.Given = true
	t.Name = p.returnedText(fn)
	return t, true
}

// returnedText returns the text that a method always returns, if the source is at hand and the compiler knows it.
func (p *Package) returnedText(fn *types.Func) string {
	for _, file := range p.Pass.Files {
		for _, decl := range file.Decls {
			source, ok := decl.(*ast.FuncDecl)
			if !ok || p.Pass.TypesInfo.Defs[source.Name] != fn || source.Body == nil || len(source.Body.List) != 1 {
				continue
			}
			returned, ok := source.Body.List[0].(*ast.ReturnStmt)
			if !ok || len(returned.Results) != 1 {
				continue
			}
			if value := p.Pass.TypesInfo.Types[returned.Results[0]].Value; value != nil && value.Kind() == constant.String {
				return constant.StringVal(value)
			}
		}
	}
	return ""
}

func (p *Package) addToProgram(own *facts.Program, call ssa.CallInstruction) {
	name, args := calls.Name(call), calls.Args(call)
	switch {
	case name == gormapi.Func{Pkg: gormapi.Gormlock, Name: "VersionTrigger"}:
		if table, ok := values.String(args[0]); ok {
			own.Triggers = append(own.Triggers, table)
		}
	case name == gormapi.Func{Pkg: gormapi.Gorm, Recv: "DB", Name: "Use"} && MayInstall(args[0]):
		own.Installs = own.Installs || !p.attributed(p.Chains.Of(calls.Receiver(call)))
	default:
		if s, ok := p.Statements.Of(call); ok && !own.Writes {
			own.Writes = s.Written().Tagged()
		}
	}
}

// attributed reports whether the db that gets the plugin is known where it is opened: it was opened here, or a caller of
// the function knows it.
func (p *Package) attributed(chains []flow.Chain) bool {
	if p.OpenedBy(chains) != nil {
		return true
	}
	return len(chains) == 1 && chains[0].Root.Kind == flow.Param && chains[0].Root.Path == "" &&
		chains[0].Root.Fn.Parent() == nil && chains[0].Root.Fn.Signature.Recv() == nil
}

// handsInstaller reports whether a function that installs the plugin is used as a value: nobody knows on which db.
func (p *Package) handsInstaller(instr ssa.Instruction) bool {
	call, isCall := instr.(ssa.CallInstruction)
	for _, operand := range instr.Operands(nil) {
		fn, ok := (*operand).(*ssa.Function)
		if !ok || isCall && call.Common().Value == *operand || calls.Declared(fn) == nil || calls.Declared(fn).Pkg() == nil {
			continue
		}
		if known := p.Known.OfFunc(calls.Declared(fn)); known != nil && len(known.Installs) > 0 {
			return true
		}
	}
	return false
}

// addNaming notices a NamingStrategy of the program.
func addNaming(p *facts.Program, store *ssa.Store) {
	at, ok := store.Addr.(*ssa.FieldAddr)
	if !ok || !gormapi.Is(at.X.Type(), "gorm.io/gorm/schema", "NamingStrategy") {
		return
	}
	switch values.Field(at) {
	case "TablePrefix":
		if prefix, ok := values.String(store.Val); ok {
			p.Prefixes = append(p.Prefixes, prefix)
		}
	case "SingularTable":
		p.Singular = p.Singular || values.True(store.Val)
	}
}
