package flow

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// walker follows one value. Values that are being followed already, in a loop, add nothing.
type walker struct {
	chains *Chains
	busy   map[ssa.Value]bool
	steps  int
}

func newWalker(chains *Chains) *walker { return &walker{chains: chains, busy: map[ssa.Value]bool{}} }

// ends returns what was found, nothing if it was too much.
func (w *walker) ends(found []Chain) []Chain {
	if w.steps > mostSteps || len(found) > mostChains {
		return nil
	}
	return found
}

func (w *walker) value(v ssa.Value) []Chain {
	if w.steps++; w.steps > mostSteps || w.busy[v] {
		return nil
	}
	w.busy[v] = true
	defer delete(w.busy, v)
	switch v := v.(type) {
	case *ssa.Parameter:
		return root(Origin{Kind: Param, Fn: v.Parent(), Index: slices.Index(v.Parent().Params, v)})
	case *ssa.FreeVar:
		if bound := w.chains.variables.Binding(v); bound != nil {
			return w.value(bound)
		}
	case *ssa.Global:
		return root(Origin{Kind: Global, Name: globalName(v)})
	case *ssa.Phi:
		var all []Chain
		for _, edge := range v.Edges {
			if values.Nil(edge) {
				continue
			}
			all = w.merged(all, w.value(edge))
		}
		return all
	case *ssa.UnOp:
		if v.Op.String() == "*" {
			return w.stored(v.X)
		}
	case *ssa.FieldAddr:
		return within(w.value(v.X), values.FieldOf(v.X.Type(), v.Field))
	case *ssa.Field:
		return within(w.value(v.X), values.FieldOf(v.X.Type(), v.Field))
	case *ssa.MakeInterface:
		return w.value(v.X)
	case *ssa.ChangeInterface:
		return w.value(v.X)
	case *ssa.ChangeType:
		return w.value(v.X)
	case *ssa.Call:
		return w.result(v, 0)
	case *ssa.Extract:
		if call, ok := v.Tuple.(*ssa.Call); ok {
			return w.result(call, v.Index)
		}
	}
	return root(Origin{Value: v})
}

// stored follows what is kept at an address.
func (w *walker) stored(addr ssa.Value) []Chain {
	switch addr := addr.(type) {
	case *ssa.Global:
		return root(Origin{Kind: Global, Name: globalName(addr)})
	case *ssa.FreeVar:
		if bound := w.chains.variables.Binding(addr); bound != nil {
			return w.stored(bound)
		}
	case *ssa.Alloc:
		if changed(addr) {
			return root(Origin{Value: addr}) // no more what it is a copy of
		}
		return w.oneOf(w.chains.variables.StoresTo(addr), Origin{Value: addr})
	case *ssa.FieldAddr:
		field := values.Field(addr)
		var all []Chain
		for _, base := range w.value(addr.X) {
			all = merged(all, w.field(base, field))
		}
		return all
	case *ssa.IndexAddr:
		return root(Origin{Value: addr})
	}
	return within(w.value(addr), "*")
}

// changed reports whether a field of a struct is assigned to, that is a copy of another.
func changed(alloc *ssa.Alloc) bool {
	return slices.ContainsFunc(*alloc.Referrers(), func(use ssa.Instruction) bool {
		at, ok := use.(*ssa.FieldAddr)
		return ok && at.X == ssa.Value(alloc) && assigned(at)
	})
}

func assigned(at *ssa.FieldAddr) bool {
	return slices.ContainsFunc(*at.Referrers(), func(use ssa.Instruction) bool {
		switch use := use.(type) {
		case *ssa.Store:
			return use.Addr == ssa.Value(at)
		case *ssa.FieldAddr:
			return assigned(use)
		}
		return false
	})
}

// field follows a field of what base points to. Of a struct made here it is what was stored there.
func (w *walker) field(base Chain, field string) []Chain {
	if call, ok := base.Root.Value.(*ssa.Call); ok && base.Root.Kind == Local {
		if found := w.madeBy(call, base.Root.Path, field); found != nil {
			return found
		}
	}
	alloc, ok := base.Root.Value.(*ssa.Alloc)
	if !ok {
		return within([]Chain{base}, field)
	}
	path := base.Root.Path + "." + field
	var all []Chain
	if kept := w.chains.variables.StoresIn(alloc, path); len(kept) > 0 {
		all = w.oneOf(kept, Origin{Value: alloc, Path: path})
	}
	if !w.busy[alloc] {
		w.busy[alloc] = true
		defer delete(w.busy, alloc)
		all = merged(all, w.copied(alloc, path))
	}
	if len(all) == 0 {
		return within([]Chain{base}, field)
	}
	return all
}

// copied follows a field of a struct, or of a struct in it, that is a copy of another.
func (w *walker) copied(alloc *ssa.Alloc, path string) (all []Chain) {
	for inner, rest := path, ""; inner != ""; {
		cut := strings.LastIndexByte(inner, '.')
		inner, rest = inner[:cut], inner[cut:]+rest
		whole := w.chains.variables.StoresIn(alloc, inner)
		if len(whole) != 1 {
			continue
		}
		of := w.value(whole[0])
		for _, field := range strings.Split(rest[1:], ".") {
			var next []Chain
			for _, base := range of {
				next = merged(next, w.field(base, field))
			}
			of = next
		}
		all = merged(all, of)
	}
	return all
}

// madeBy follows a field of a struct that a function made and returned.
func (w *walker) madeBy(call *ssa.Call, path, field string) []Chain {
	known := w.chains.known.Of(call)
	index, path := splitResult(path)
	if known == nil || index >= len(known.Results) {
		return nil
	}
	name := strings.TrimPrefix(path+"."+field, ".")
	for _, f := range known.Results[index].Fields {
		if f.Name == name {
			return w.place(call, f.Place)
		}
	}
	return nil
}

// oneOf follows the values that can be at a place.
func (w *walker) oneOf(stored []ssa.Value, otherwise Origin) []Chain {
	var all []Chain
	for _, v := range stored {
		if values.Nil(v) {
			continue
		}
		all = w.merged(all, w.value(v))
	}
	if len(all) == 0 {
		return root(otherwise)
	}
	return all
}

// merged is merged, and the end of the walk when there are too many.
func (w *walker) merged(all, more []Chain) []Chain {
	if all = merged(all, more); len(all) > mostChains {
		w.steps = mostSteps + 1
	}
	return all
}

func globalName(v *ssa.Global) string {
	if v.Object() != nil && v.Object().Pkg() != nil {
		return gormapi.PathOf(v.Object().Pkg()) + "." + v.Name()
	}
	return v.String()
}
