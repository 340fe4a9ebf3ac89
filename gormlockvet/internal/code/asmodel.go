package code

import (
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/models"
	"github.com/gormlock/gormlock/gormlockvet/internal/statements"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// UsedAsModel reports whether GORM surely meets the struct as a model, not only inside of another: the package gives it to
// GORM, or it says its table's name.
func (p *Package) UsedAsModel(object *types.TypeName) bool {
	if method, _, _ := types.LookupFieldOrMethod(object.Type(), true, p.Pass.Pkg, "TableName"); method != nil {
		if _, ok := method.(*types.Func); ok {
			return true
		}
	}
	if p.models == nil {
		p.models = map[*types.TypeName]bool{}
		for _, fn := range p.Funcs {
			for call := range calls.In(fn) {
				p.addModels(call)
			}
		}
	}
	return p.models[object]
}

func (p *Package) addModels(call ssa.CallInstruction) {
	add := func(t types.Type) {
		if named := models.NamedOf(t); named != nil {
			p.models[named.Obj()] = true
		}
	}
	if s, ok := p.Statements.Of(call); ok && !hasText(s) {
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
