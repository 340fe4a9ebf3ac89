package flow

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

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

// At returns the variable that an address, a map or a channel is.
func (vs *Variables) At(v ssa.Value) (Variable, bool) {
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
			if bound := vs.Binding(at); bound != nil {
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
func (vs *Variables) GrowsFrom(v, addr ssa.Value) bool { return vs.growsFrom(v, addr, 0) }

func (vs *Variables) growsFrom(v, addr ssa.Value, depth int) bool {
	const deepest = 6
	if depth > deepest {
		return false
	}
	switch v := v.(type) {
	case *ssa.BinOp:
		return vs.growsFrom(v.X, addr, depth+1) || vs.growsFrom(v.Y, addr, depth+1)
	case *ssa.UnOp:
		return v.Op == token.MUL && vs.oneVariable(v.X, addr)
	case *ssa.Convert:
		return vs.growsFrom(v.X, addr, depth+1)
	case *ssa.Call:
		if builtin, ok := v.Call.Value.(*ssa.Builtin); ok && builtin.Name() == "append" {
			return vs.growsFrom(v.Call.Args[0], addr, depth+1)
		}
	}
	return false
}

// oneVariable reports whether two addresses are one place.
func (vs *Variables) oneVariable(a, b ssa.Value) bool {
	if a == b {
		return true
	}
	x, okX := vs.At(a)
	y, okY := vs.At(b)
	return okX && okY && x == y
}
