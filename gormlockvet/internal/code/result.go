package code

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/opens"
	"github.com/gormlock/gormlock/gormlockvet/internal/statements"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// results finds what the functions of a package return.
type results struct {
	variables *flow.Variables
	chains    *flow.Chains
	known     *facts.Known
	carries   *statements.Carries
	opens     *opens.Opens
}

// of returns what is known of a result of fn.
func (rs *results) of(fn *ssa.Function, index int) facts.Result {
	result, _ := facts.Agreed(fn, index, func(v ssa.Value) facts.Result { return rs.from(fn, v) })
	return result
}

func (rs *results) from(fn *ssa.Function, v ssa.Value) (r facts.Result) {
	if r = rs.carries.Returned(fn, v); r.Known {
		return r
	}
	chains := rs.chains.Of(v)
	r.Puts = rs.carries.OfPart(v)
	if opened, ok := rs.opens.By(chains); ok {
		r.Opened, r.Used = true, rs.opens.Installed(fn, opened)
		return r
	}
	if len(chains) != 1 || chains[0].Root.Kind != flow.Local {
		return r
	}
	switch made := chains[0].Root.Value.(type) {
	case *ssa.Alloc:
		r.Read = rs.readInto(made)
		r.Fields = rs.fieldsOf(fn, made)
	case *ssa.Call: // handed on from another function
		if known := rs.known.Of(made); known != nil {
			if i := chains[0].Root.Result(); i < len(known.Results) {
				r.Read = known.Results[i].Read
			}
		}
		r.Read = r.Read || gormapi.GenericRole(calls.Name(made)) == gormapi.Reads
	}
	return r
}

// readInto reports whether a read fills the struct.
func (rs *results) readInto(alloc *ssa.Alloc) bool {
	for _, use := range rs.variables.UsesOf(alloc) {
		made, ok := use.(*ssa.MakeInterface)
		if !ok {
			continue
		}
		for _, use := range *made.Referrers() {
			if call, ok := use.(ssa.CallInstruction); ok && gormapi.MethodRole(calls.Name(call)) == gormapi.Reads {
				return true
			}
		}
	}
	for _, v := range rs.variables.StoresTo(alloc) {
		if extract, ok := v.(*ssa.Extract); ok {
			if call, ok := extract.Tuple.(*ssa.Call); ok && gormapi.GenericRole(calls.Name(call)) == gormapi.Reads {
				return true
			}
		}
	}
	return false
}

// fieldsOf returns what the fields of a struct are that fn makes, down to those of the structs in it.
func (rs *results) fieldsOf(fn *ssa.Function, alloc *ssa.Alloc) []facts.FieldPlace {
	fields := rs.fieldsAt(fn, alloc, "")
	slices.SortFunc(fields, func(a, b facts.FieldPlace) int { return strings.Compare(a.Name, b.Name) })
	return fields
}

func (rs *results) fieldsAt(fn *ssa.Function, of ssa.Value, prefix string) (fields []facts.FieldPlace) {
	for _, use := range *of.Referrers() {
		at, ok := use.(*ssa.FieldAddr)
		if !ok || at.X != of {
			continue
		}
		name := prefix + values.Field(at)
		fields = append(fields, rs.fieldsAt(fn, at, name+".")...)
		for _, use := range *at.Referrers() {
			store, ok := use.(*ssa.Store)
			if !ok || store.Addr != at {
				continue
			}
			if place, ok := flow.PlaceOf(fn, rs.chains.Of(store.Val)); ok {
				fields = append(fields, facts.FieldPlace{Name: name, Place: place})
			}
			fields = append(fields, rs.fieldsOfPart(fn, store.Val, name)...)
		}
	}
	return fields
}

func (rs *results) fieldsOfPart(fn *ssa.Function, v ssa.Value, name string) (fields []facts.FieldPlace) {
	call, ok := values.Bare(v).(*ssa.Call)
	if !ok {
		return nil
	}
	known := rs.known.Of(call)
	if known == nil || len(known.Results) == 0 {
		return nil
	}
	const most = 32
	for _, inner := range known.Results[0].Fields {
		if place, ok := flow.PlaceOf(fn, rs.chains.At(call, inner.Place)); ok && len(fields) < most {
			fields = append(fields, facts.FieldPlace{Name: name + "." + inner.Name, Place: place})
		}
	}
	return fields
}
