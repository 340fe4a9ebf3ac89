package code

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Variable is a variable, or a field of one. It prints as a reader knows it.
type Variable struct {
	Origin Origin
	Name   string
}

func (v Variable) String() string { return v.Name }

// Field returns the variable in it that a path leads to.
func (v Variable) Field(path string) Variable {
	v.Origin.Path += path
	v.Name += path
	return v
}

// VariableAt returns the variable that an address, a map or a channel is.
func (p *Package) VariableAt(v ssa.Value) (Variable, bool) {
	path := ""
	for {
		switch at := v.(type) {
		case *ssa.FieldAddr:
			path = "." + values.Field(at) + path
			v = at.X
			continue
		case *ssa.IndexAddr:
			v = at.X
			continue
		case *ssa.UnOp:
			if at.Op == token.MUL {
				v = at.X
				continue
			}
		case *ssa.FreeVar:
			if bound := p.binding(at); bound != nil {
				v = bound
				continue
			}
		case *ssa.ChangeType:
			v = at.X
			continue
		}
		break
	}
	switch at := v.(type) {
	case *ssa.Alloc:
		return Variable{Origin{Value: at, Path: path}, at.Comment + path}, true
	case *ssa.Global:
		return Variable{Origin{Kind: Global, Name: at.String(), Path: path}, at.Name() + path}, true
	case *ssa.Parameter:
		return Variable{Origin{Kind: Param, Fn: at.Parent(), Index: slices.Index(at.Parent().Params, at), Path: path}, at.Name() + path}, true
	case *ssa.MakeMap, *ssa.MakeChan:
		return Variable{Origin{Value: v, Path: path}, "it"}, true
	}
	return Variable{}, false
}

// GrowsFrom reports whether a value is made of what is at an address: v + 1, append(v, x).
func (p *Package) GrowsFrom(v, addr ssa.Value) bool { return p.growsFrom(v, addr, 0) }

func (p *Package) growsFrom(v, addr ssa.Value, depth int) bool {
	const deepest = 6
	if depth > deepest {
		return false
	}
	switch v := v.(type) {
	case *ssa.BinOp:
		return p.growsFrom(v.X, addr, depth+1) || p.growsFrom(v.Y, addr, depth+1)
	case *ssa.UnOp:
		return v.Op == token.MUL && p.oneVariable(v.X, addr)
	case *ssa.Convert:
		return p.growsFrom(v.X, addr, depth+1)
	case *ssa.Call:
		if builtin, ok := v.Call.Value.(*ssa.Builtin); ok && builtin.Name() == "append" {
			return p.growsFrom(v.Call.Args[0], addr, depth+1)
		}
	}
	return false
}

// oneVariable reports whether two addresses are one place.
func (p *Package) oneVariable(a, b ssa.Value) bool {
	if a == b {
		return true
	}
	x, okX := p.VariableAt(a)
	y, okY := p.VariableAt(b)
	return okX && okY && x == y
}

// growthOf returns which slices, reached by its parameters, a function appends to that is given the db of a transaction:
// it keeps in memory what it writes, or what is to be done when that is stored.
func (p *Package) growthOf(fn *ssa.Function) (grown []facts.Place) {
	if !slices.ContainsFunc(fn.Params, func(v *ssa.Parameter) bool { return gormapi.IsDB(v.Type()) }) {
		return nil
	}
	const most = 4
	anew := map[facts.Place]bool{}
	for _, part := range p.RunBy(fn) {
		for instr := range calls.Instructions(part) {
			store, ok := instr.(*ssa.Store)
			if !ok {
				continue
			}
			v, ok := p.VariableAt(store.Addr)
			if !ok || v.Origin.Kind != Param || v.Origin.Fn != fn {
				continue
			}
			at := facts.Place{Param: v.Origin.Index, Path: v.Origin.Path}
			if !p.GrowsFrom(store.Val, store.Addr) {
				anew[at] = true
			} else if _, appends := store.Val.(*ssa.Call); appends && len(grown) < most && !slices.Contains(grown, at) {
				grown = append(grown, at)
			}
		}
	}
	return slices.DeleteFunc(grown, func(at facts.Place) bool { return anew[at] })
}
