package flow

import (
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/models"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Chains finds out in which ways values came to be, and remembers it.
type Chains struct {
	variables *Variables
	known     *facts.Known
	found     map[ssa.Value][]Chain
}

// NewChains returns the chains of a package's values, through its variables and what is known of the functions called.
func NewChains(variables *Variables, known *facts.Known) *Chains {
	return &Chains{variables: variables, known: known, found: map[ssa.Value][]Chain{}}
}

// Forget drops what was found: more is known of the functions that are called.
func (c *Chains) Forget() { clear(c.found) }

// Of returns the ways in which v can have come to be, none if there are too many.
func (c *Chains) Of(v ssa.Value) []Chain {
	if found, ok := c.found[v]; ok {
		return found
	}
	w := newWalker(c)
	found := w.ends(w.value(v))
	c.found[v] = found
	return found
}

// Origin returns where v comes from, if that is one place.
func (c *Chains) Origin(v ssa.Value) (Origin, bool) { return Root(c.Of(v)) }

// Made returns what v is where that is made here, or returned by a call: the whole of it, not a field. Else it is nil.
func (c *Chains) Made(v ssa.Value) ssa.Value {
	if chains := c.Of(v); len(chains) == 1 && chains[0].Root.Kind == Local && chains[0].Root.Path == "" {
		return chains[0].Root.Value
	}
	return nil
}

// At returns where a place that a summary names is, at a call of its function.
func (c *Chains) At(call ssa.CallInstruction, at facts.Place) []Chain {
	w := newWalker(c)
	return w.ends(w.place(call, at))
}

// Literal returns the function literal that a value is, nil if it is none.
func (c *Chains) Literal(v ssa.Value) *ssa.Function {
	var fn *ssa.Function
	switch v := v.(type) {
	case *ssa.MakeClosure:
		fn, _ = v.Fn.(*ssa.Function)
	case *ssa.Function:
		fn = v
	default:
		switch made := c.Made(v).(type) {
		case *ssa.MakeClosure:
			fn, _ = made.Fn.(*ssa.Function)
		case *ssa.Function:
			fn = made
		}
	}
	if fn == nil || fn.Parent() == nil {
		return nil
	}
	return fn
}

// Struct returns the variable that a pointer to a struct points to, as an argument of a statement. An element, or a copy
// of one that a loop makes, is the slice it is of.
func (c *Chains) Struct(v ssa.Value) (Origin, bool) {
	v = values.Bare(v)
	if models.NamedOf(v.Type()) == nil {
		return Origin{}, false
	}
	if slice, ok := c.sliceOf(v); ok {
		return slice, true
	}
	return c.Origin(v)
}

// sliceOf returns where the slice comes from that an address is an element of, or a copy of one.
func (c *Chains) sliceOf(addr ssa.Value) (Origin, bool) {
	switch at := addr.(type) {
	case *ssa.IndexAddr:
		return c.Origin(at.X)
	case *ssa.FreeVar:
		if bound := c.variables.Binding(at); bound != nil {
			return c.sliceOf(bound)
		}
	case *ssa.Alloc:
		if stored := c.variables.StoresTo(at); len(stored) == 1 {
			if load, ok := stored[0].(*ssa.UnOp); ok {
				if element, ok := load.X.(*ssa.IndexAddr); ok {
					return c.sliceOf(element)
				}
			}
		}
	}
	return Origin{}, false
}
