package flow

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Variables knows what is assigned to the variables of a package, and what its function literals capture.
type Variables struct {
	funcs    []*ssa.Function
	closures map[*ssa.Function]*ssa.MakeClosure
	stores   map[ssa.Value][]ssa.Value
	globals  map[*ssa.Global][]ssa.Value
}

// NewVariables returns the variables of a package, whose functions those are.
func NewVariables(funcs []*ssa.Function) *Variables {
	vs := &Variables{funcs: funcs, closures: map[*ssa.Function]*ssa.MakeClosure{}, stores: map[ssa.Value][]ssa.Value{}}
	for _, fn := range funcs {
		for instr := range calls.Instructions(fn) {
			if made, ok := instr.(*ssa.MakeClosure); ok {
				vs.closures[made.Fn.(*ssa.Function)] = made
			}
		}
	}
	return vs
}

// Binding returns what a function literal captured.
func (vs *Variables) Binding(v *ssa.FreeVar) ssa.Value {
	made := vs.closures[v.Parent()]
	if made == nil {
		return nil
	}
	if i := slices.Index(v.Parent().FreeVars, v); i >= 0 && i < len(made.Bindings) {
		return made.Bindings[i]
	}
	return nil
}

// StoresTo returns what is assigned to a variable, in function literals too.
func (vs *Variables) StoresTo(addr ssa.Value) []ssa.Value {
	if found, ok := vs.stores[addr]; ok {
		return found
	}
	var found []ssa.Value
	for _, use := range vs.UsesOf(addr) {
		if store, ok := use.(*ssa.Store); ok {
			found = append(found, store.Val)
		}
	}
	vs.stores[addr] = found
	return found
}

// StoresIn returns what is assigned to a field of a struct, or of a struct in it; without a path, to the whole.
func (vs *Variables) StoresIn(alloc *ssa.Alloc, path string) (found []ssa.Value) {
	if path == "" {
		return vs.StoresTo(alloc)
	}
	field, rest, _ := strings.Cut(path[1:], ".")
	addresses := []ssa.Value{alloc}
	for {
		var next []ssa.Value
		for _, address := range addresses {
			for _, use := range *address.Referrers() {
				if at, ok := use.(*ssa.FieldAddr); ok && at.X == address && values.Field(at) == field {
					next = append(next, at)
				}
			}
		}
		addresses = next
		if rest == "" {
			break
		}
		field, rest, _ = strings.Cut(rest, ".")
	}
	for _, address := range addresses {
		for _, use := range *address.Referrers() {
			if store, ok := use.(*ssa.Store); ok && store.Addr == address {
				found = append(found, store.Val)
			}
		}
	}
	return found
}

// UsesOf returns the uses of a variable's address, in function literals that captured it too.
func (vs *Variables) UsesOf(addr ssa.Value) []ssa.Instruction {
	if addr.Referrers() == nil {
		return nil
	}
	var uses []ssa.Instruction
	for _, use := range *addr.Referrers() {
		switch use := use.(type) {
		case *ssa.Store:
			if use.Addr == addr {
				uses = append(uses, use)
			}
		case *ssa.MakeClosure:
			for i, bound := range use.Bindings {
				if bound == addr {
					uses = append(uses, vs.UsesOf(use.Fn.(*ssa.Function).FreeVars[i])...)
				}
			}
		default:
			uses = append(uses, use)
		}
	}
	return uses
}

// Assigned returns the value of a package's variable that is assigned once, where it is declared.
func (vs *Variables) Assigned(v ssa.Value) (ssa.Value, bool) {
	load, ok := v.(*ssa.UnOp)
	if !ok {
		return nil, false
	}
	global, ok := load.X.(*ssa.Global)
	if !ok {
		return nil, false
	}
	if vs.globals == nil {
		vs.globals = map[*ssa.Global][]ssa.Value{}
		for _, fn := range vs.funcs {
			for instr := range calls.Instructions(fn) {
				if store, ok := instr.(*ssa.Store); ok {
					if to, ok := store.Addr.(*ssa.Global); ok {
						vs.globals[to] = append(vs.globals[to], store.Val)
					}
				}
			}
		}
	}
	if assigned := vs.globals[global]; len(assigned) == 1 {
		return assigned[0], true
	}
	return nil, false
}

// Elements returns what can be among the elements of a slice: of a literal, of what is appended to it.
func (vs *Variables) Elements(v ssa.Value) []ssa.Value { return vs.elements(v, map[ssa.Value]bool{}) }

func (vs *Variables) elements(v ssa.Value, seen map[ssa.Value]bool) (all []ssa.Value) {
	if seen[v] {
		return nil
	}
	seen[v] = true
	if literal, ok := values.Variadic(v); ok {
		return literal
	}
	switch v := v.(type) {
	case *ssa.Call:
		if builtin, ok := v.Call.Value.(*ssa.Builtin); ok && builtin.Name() == "append" {
			for _, arg := range v.Call.Args {
				all = append(all, vs.elements(arg, seen)...)
			}
		}
	case *ssa.Phi:
		for _, edge := range v.Edges {
			all = append(all, vs.elements(edge, seen)...)
		}
	case *ssa.UnOp:
		if alloc, ok := v.X.(*ssa.Alloc); ok {
			for _, stored := range vs.StoresTo(alloc) {
				all = append(all, vs.elements(stored, seen)...)
			}
		}
	}
	return all
}

// MadeOf returns the values that a value is computed from.
func (vs *Variables) MadeOf(v ssa.Value) (parts []ssa.Value) {
	switch v := v.(type) {
	case *ssa.UnOp:
		switch at := v.X.(type) {
		case *ssa.Alloc:
			return vs.StoresTo(at)
		case *ssa.FreeVar:
			if bound := vs.Binding(at); bound != nil {
				return vs.StoresTo(bound)
			}
		}
		return nil
	case *ssa.Call:
		for _, arg := range v.Call.Args {
			parts = append(parts, values.Parts(arg)...)
		}
		return parts
	case *ssa.BinOp, *ssa.Convert, *ssa.ChangeType, *ssa.MakeInterface, *ssa.Phi, *ssa.Extract:
		for _, operand := range v.(ssa.Instruction).Operands(nil) {
			parts = append(parts, *operand)
		}
	}
	return parts
}
