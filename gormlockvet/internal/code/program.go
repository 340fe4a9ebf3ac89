package code

import (
	"go/ast"
	"go/constant"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/models"
	"github.com/gormlock/gormlock/gormlockvet/internal/opens"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// programReader finds out what a package has to do with the tagged models of its program.
type programReader struct {
	*Package
	pass  *analysis.Pass
	opens *opens.Opens
	own   facts.Program
}

// export adds what this package does. The fact has what the packages below say too: go vet hands on only facts of
// packages that the types of an importer lead to.
func (pr *programReader) export() {
	pr.own.Names = namesGorm(pr.pass.Pkg)
	if !gormapi.OurPackage(gormapi.PathOf(pr.pass.Pkg)) {
		pr.tables()
		pr.functions()
	}
	pr.Program.Add(&pr.own)
	all := *pr.Program
	if all.Names = pr.own.Names; !all.Empty() {
		pr.pass.ExportPackageFact(&all)
	}
}

func (pr *programReader) tables() {
	scope := pr.pass.Pkg.Scope()
	for _, name := range scope.Names() {
		object, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || object.IsAlias() || pr.Source.InTest(object.Pos()) {
			continue
		}
		if table, ok := pr.tableOf(object); ok {
			pr.own.Tables = append(pr.own.Tables, table)
		}
	}
}

func (pr *programReader) functions() {
	for _, fn := range pr.Funcs {
		if pr.Source.InTest(fn.Pos()) {
			continue
		}
		for instr := range calls.Instructions(fn) {
			if call, ok := instr.(ssa.CallInstruction); ok {
				pr.addCall(call)
			}
			if store, ok := instr.(*ssa.Store); ok {
				pr.addNaming(store)
			}
			pr.own.Installs = pr.own.Installs || pr.handsInstaller(instr)
		}
	}
}

func (pr *programReader) tableOf(object *types.TypeName) (facts.Table, bool) {
	m := models.OfType(object.Type())
	if !m.Tagged() {
		return facts.Table{}, false
	}
	if named, ok := object.Type().(*types.Named); ok && named.TypeParams().Len() > 0 {
		return facts.Table{}, false
	}
	t := facts.Table{
		Model: object.Name(), Package: pr.pass.Pkg.Path(), Version: m.Version, Fence: m.Fence, Xmin: m.Xmin,
		Defaulted: m.Defaulted, Unversioned: m.Unversioned,
	}
	if len(m.Keys) == 0 {
		return t, false // it is there to be embedded
	}
	method, _, _ := types.LookupFieldOrMethod(object.Type(), true, pr.pass.Pkg, "TableName")
	fn, ok := method.(*types.Func)
	if !ok {
		t.Name = models.TableName(object.Name())
		return t, true
	}
	t.Given = true
	t.Name = pr.returnedText(fn)
	return t, true
}

// returnedText returns the text that a method always returns, if the source is at hand and the compiler knows it.
func (pr *programReader) returnedText(fn *types.Func) string {
	for _, file := range pr.pass.Files {
		for _, decl := range file.Decls {
			source, ok := decl.(*ast.FuncDecl)
			if !ok || pr.pass.TypesInfo.Defs[source.Name] != fn || source.Body == nil || len(source.Body.List) != 1 {
				continue
			}
			returned, ok := source.Body.List[0].(*ast.ReturnStmt)
			if !ok || len(returned.Results) != 1 {
				continue
			}
			if value := pr.pass.TypesInfo.Types[returned.Results[0]].Value; value != nil && value.Kind() == constant.String {
				return constant.StringVal(value)
			}
		}
	}
	return ""
}

func (pr *programReader) addCall(call ssa.CallInstruction) {
	name, args := calls.Name(call), calls.Args(call)
	switch {
	case name == gormapi.Func{Pkg: gormapi.Gormlock, Name: "VersionTrigger"}:
		if table, ok := values.String(args[0]); ok {
			pr.own.Triggers = append(pr.own.Triggers, table)
		}
	case opens.Installs(call):
		pr.own.Installs = pr.own.Installs || !pr.attributed(pr.Chains.Of(calls.Receiver(call)))
	default:
		if s, ok := pr.Statements.Of(call); ok && !pr.own.Writes {
			pr.own.Writes = s.Written().Tagged()
		}
	}
}

// attributed reports whether the db that gets the plugin is known where it is opened: it was opened here, or a caller of
// the function knows it.
func (pr *programReader) attributed(chains []flow.Chain) bool {
	if _, here := pr.opens.By(chains); here {
		return true
	}
	return len(chains) == 1 && chains[0].Root.Kind == flow.Param && chains[0].Root.Path == "" &&
		chains[0].Root.Fn.Parent() == nil && chains[0].Root.Fn.Signature.Recv() == nil
}

// handsInstaller reports whether a function that installs the plugin is used as a value: nobody knows on which db.
func (pr *programReader) handsInstaller(instr ssa.Instruction) bool {
	call, isCall := instr.(ssa.CallInstruction)
	for _, operand := range instr.Operands(nil) {
		fn, ok := (*operand).(*ssa.Function)
		if !ok || isCall && call.Common().Value == *operand || calls.Declared(fn) == nil || calls.Declared(fn).Pkg() == nil {
			continue
		}
		if known := pr.Known.OfFunc(calls.Declared(fn)); known != nil && len(known.Installs) > 0 {
			return true
		}
	}
	return false
}

// addNaming notices a NamingStrategy of the program.
func (pr *programReader) addNaming(store *ssa.Store) {
	at, ok := store.Addr.(*ssa.FieldAddr)
	if !ok || !gormapi.Is(at.X.Type(), "gorm.io/gorm/schema", "NamingStrategy") {
		return
	}
	switch values.Field(at) {
	case "TablePrefix":
		if prefix, ok := values.String(store.Val); ok {
			pr.own.Prefixes = append(pr.own.Prefixes, prefix)
		}
	case "SingularTable":
		pr.own.Singular = pr.own.Singular || values.True(store.Val)
	}
}
