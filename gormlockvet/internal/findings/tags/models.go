package tags

import (
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/code"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/models"
	"github.com/gormlock/gormlock/gormlockvet/internal/statements"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// gormModels has the structs that GORM surely meets as models.
type gormModels struct {
	pkg   *types.Package
	p     *code.Package
	given map[*types.TypeName]bool // to GORM, by the package; nil until one is asked for
}

// has reports whether GORM surely meets the struct as a model, not only inside of another: the package gives it to GORM,
// or it says its table's name.
func (g *gormModels) has(object *types.TypeName) bool {
	method, _, _ := types.LookupFieldOrMethod(object.Type(), true, g.pkg, "TableName")
	if _, named := method.(*types.Func); named {
		return true
	}
	if g.given == nil {
		g.given = map[*types.TypeName]bool{}
		for _, fn := range g.p.Funcs {
			for call := range calls.In(fn) {
				g.add(call)
			}
		}
	}
	return g.given[object]
}

func (g *gormModels) add(call ssa.CallInstruction) {
	add := func(t types.Type) {
		if named := models.NamedOf(t); named != nil {
			g.given[named.Obj()] = true
		}
	}
	if s, ok := g.p.Statements.Of(call); ok && !hasText(s) {
		for _, t := range s.Types() {
			add(t)
		}
	}
	name := calls.Name(call)
	if name.Name == "AutoMigrate" && (name.Pkg == gormapi.Gorm || name.Pkg == gormapi.Gormlock) && len(calls.Args(call)) > 0 {
		elements, _ := values.Variadic(calls.Args(call)[len(calls.Args(call))-1])
		for _, element := range elements {
			add(values.Bare(element).Type())
		}
	}
}

// hasText reports whether the statement's rows may be of any shape, and its table is named by text or by another model.
func hasText(s statements.Statement) bool {
	for link := range s.Links() {
		switch calls.Name(link).Name {
		case "Raw", "Table", "Model":
			return true
		}
	}
	return s.Name.Name == "Scan"
}
