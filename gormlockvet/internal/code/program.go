package code

import (
	"go/ast"
	"go/constant"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/models"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Program is what is known of a package and of those below it: tagged models and their tables, and who installs the
// plugin.
type Program struct {
	Tables   []Table
	Triggers []string // tables whose version moves by a trigger of gormlock
	Prefixes []string // of table names, where the program sets one
	Singular bool     // tables are named by the singular somewhere
	Installs bool     // the plugin is installed on a db that was opened elsewhere
	Writes   bool     // rows of tagged models are written
	Names    bool     // the package imports GORM or gormlock
}

// Table is the table of a tagged model.
type Table struct {
	Model, Package string
	Name           string // empty: not known
	Given          bool   // by TableName, not by GORM's naming
	Version        string
	Fence          string
	Xmin           bool
	Defaulted      bool
	Unversioned    []string
}

// AFact makes a Program a fact about a package.
func (*Program) AFact() {}

func (*Program) String() string { return "gormlock program" }

// programBelow joins what the packages below say.
func programBelow(pass *analysis.Pass) *Program {
	program := new(Program)
	for _, fact := range pass.AllPackageFacts() {
		if below, ok := fact.Fact.(*Program); ok && fact.Package != pass.Pkg {
			program.add(below)
		}
	}
	return program
}

// exportProgram adds what this package does. The fact has what the packages below say too: go vet hands on only facts of
// packages that the types of an importer lead to.
func (p *Package) exportProgram() {
	own := p.ownProgram()
	p.Program.add(own)
	all := *p.Program
	if all.Names = own.Names; !all.empty() {
		p.Pass.ExportPackageFact(&all)
	}
}

func (p *Program) empty() bool {
	return len(p.Tables)+len(p.Triggers)+len(p.Prefixes) == 0 && !p.Singular && !p.Installs && !p.Writes && !p.Names
}

func (p *Program) add(more *Program) {
	for _, t := range more.Tables {
		if !slices.ContainsFunc(p.Tables, func(have Table) bool { return have.Package == t.Package && have.Model == t.Model }) {
			p.Tables = append(p.Tables, t)
		}
	}
	p.Triggers = joined(p.Triggers, more.Triggers)
	p.Prefixes = joined(p.Prefixes, more.Prefixes)
	p.Singular = p.Singular || more.Singular
	p.Installs = p.Installs || more.Installs
	p.Writes = p.Writes || more.Writes
}

func joined(names, more []string) []string {
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (p *Package) ownProgram() *Program {
	own := &Program{Names: p.namesGorm()}
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
				own.addNaming(store)
			}
			own.Installs = own.Installs || p.handsInstaller(instr)
		}
	}
	return own
}

func (p *Package) tableOf(object *types.TypeName) (Table, bool) {
	m := models.OfType(object.Type())
	if !m.Tagged() {
		return Table{}, false
	}
	if named, ok := object.Type().(*types.Named); ok && named.TypeParams().Len() > 0 {
		return Table{}, false
	}
	t := Table{
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

func (p *Package) addToProgram(own *Program, call ssa.CallInstruction) {
	name, args := calls.Name(call), calls.Args(call)
	switch {
	case name == gormapi.Func{Pkg: gormapi.Gormlock, Name: "VersionTrigger"}:
		if table, ok := values.String(args[0]); ok {
			own.Triggers = append(own.Triggers, table)
		}
	case name == gormapi.Func{Pkg: gormapi.Gorm, Recv: "DB", Name: "Use"} && MayInstall(args[0]):
		own.Installs = own.Installs || !p.attributed(p.Chains(calls.Receiver(call)))
	default:
		if s, ok := p.StatementOf(call); ok && !own.Writes {
			own.Writes = p.ModelWritten(s).Tagged()
		}
	}
}

// attributed reports whether the db that gets the plugin is known where it is opened: it was opened here, or a caller of
// the function knows it.
func (p *Package) attributed(chains []Chain) bool {
	if p.OpenedBy(chains) != nil {
		return true
	}
	return len(chains) == 1 && chains[0].Root.Kind == Param && chains[0].Root.Path == "" &&
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
		if known := p.summaryOf(calls.Declared(fn)); known != nil && len(known.Installs) > 0 {
			return true
		}
	}
	return false
}

// addNaming notices a NamingStrategy of the program.
func (p *Program) addNaming(store *ssa.Store) {
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

// Named returns the tagged models whose table the name in a statement means.
func (p *Program) Named(table string) (found []*Table) {
	for i, t := range p.Tables {
		if slices.ContainsFunc(p.namesOf(t), func(name string) bool { return sameTable(name, table) }) {
			found = append(found, &p.Tables[i])
		}
	}
	return found
}

func (p *Program) namesOf(t Table) []string {
	if t.Name == "" {
		return nil
	}
	names := []string{t.Name}
	if t.Given {
		return names
	}
	if p.Singular {
		names = append(names, models.SingularTableName(t.Model))
	}
	for _, prefix := range p.Prefixes {
		for _, name := range names {
			names = append(names, prefix+name)
		}
	}
	return names
}

// sameTable compares names that may have a schema. Without one the name may be of the schema public.
func sameTable(a, b string) bool {
	plain := func(name string) string { return strings.TrimPrefix(strings.ToLower(name), "public.") }
	return plain(a) == plain(b)
}

// HasTrigger reports whether the program gives the table a trigger that moves its version.
func (p *Program) HasTrigger(t *Table) bool {
	return slices.ContainsFunc(p.Triggers, func(name string) bool { return sameTable(name, t.Name) })
}
