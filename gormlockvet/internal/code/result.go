package code

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

func (p *Package) resultFrom(fn *ssa.Function, v ssa.Value) (r facts.Result) {
	if r = p.Carries.Returned(fn, v); r.Known {
		return r
	}
	chains := p.Chains.Of(v)
	r.Puts = p.Carries.OfPart(v)
	if opened := p.OpenedBy(chains); opened != nil {
		r.Opened, r.Used = true, p.Installed(fn, *opened)
		return r
	}
	if len(chains) != 1 || chains[0].Root.Kind != flow.Local {
		return r
	}
	switch made := chains[0].Root.Value.(type) {
	case *ssa.Alloc:
		r.Read = p.readInto(made)
		r.Fields = p.fieldsOf(fn, made)
	case *ssa.Call: // handed on from another function
		if known := p.Known.Of(made); known != nil {
			if i := chains[0].Root.Result(); i < len(known.Results) {
				r.Read = known.Results[i].Read
			}
		}
		r.Read = r.Read || gormapi.GenericRole(calls.Name(made)) == gormapi.Reads
	}
	return r
}

// OpenedBy returns where a db was opened that is nothing else on another way.
func (p *Package) OpenedBy(chains []flow.Chain) *flow.Origin {
	if len(chains) == 0 {
		return nil
	}
	for _, c := range chains {
		if c.Root != chains[0].Root {
			return nil
		}
	}
	switch o := chains[0].Root; o.Kind {
	case flow.Opened:
		return &o
	case flow.Local:
		call, ok := o.Value.(*ssa.Call)
		if !ok {
			return nil
		}
		known := p.Known.Of(call)
		if i := o.Result(); known != nil && i < len(known.Results) && known.Results[i].Opened {
			return &o
		}
	default: // it is somebody else's
	}
	return nil
}

// Installed reports whether fn, or a function that it calls, installs the plugin on what was opened.
func (p *Package) Installed(fn *ssa.Function, opened flow.Origin) bool {
	if call, ok := opened.Value.(*ssa.Call); ok && opened.Kind == flow.Local {
		if known := p.Known.Of(call); known != nil && known.Results[opened.Result()].Used {
			return true
		}
	}
	is := func(chains []flow.Chain) bool {
		return slices.ContainsFunc(chains, func(c flow.Chain) bool { return c.Root == opened })
	}
	for _, part := range calls.Family(fn) { // a step in a list of steps counts
		for call := range calls.In(part) {
			if calls.Name(call) == (gormapi.Func{Pkg: gormapi.Gorm, Recv: "DB", Name: "Use"}) && MayInstall(calls.Args(call)[0]) && is(p.Chains.Of(calls.Receiver(call))) {
				return true
			}
			if known := p.Known.Of(call); known != nil {
				for _, at := range known.Installs {
					if is(p.Chains.At(call, at)) {
						return true
					}
				}
			}
		}
	}
	return false
}

// readInto reports whether a read fills the struct.
func (p *Package) readInto(alloc *ssa.Alloc) bool {
	for _, use := range p.Variables.UsesOf(alloc) {
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
	for _, v := range p.Variables.StoresTo(alloc) {
		if extract, ok := v.(*ssa.Extract); ok {
			if call, ok := extract.Tuple.(*ssa.Call); ok && gormapi.GenericRole(calls.Name(call)) == gormapi.Reads {
				return true
			}
		}
	}
	return false
}

// fieldsOf returns what the fields of a struct are that fn makes, down to those of the structs in it.
func (p *Package) fieldsOf(fn *ssa.Function, alloc *ssa.Alloc) []facts.FieldPlace {
	fields := p.fieldsAt(fn, alloc, "")
	slices.SortFunc(fields, func(a, b facts.FieldPlace) int { return strings.Compare(a.Name, b.Name) })
	return fields
}

func (p *Package) fieldsAt(fn *ssa.Function, of ssa.Value, prefix string) (fields []facts.FieldPlace) {
	for _, use := range *of.Referrers() {
		at, ok := use.(*ssa.FieldAddr)
		if !ok || at.X != of {
			continue
		}
		name := prefix + values.Field(at)
		fields = append(fields, p.fieldsAt(fn, at, name+".")...)
		for _, use := range *at.Referrers() {
			store, ok := use.(*ssa.Store)
			if !ok || store.Addr != at {
				continue
			}
			if place, ok := flow.PlaceOf(fn, p.Chains.Of(store.Val)); ok {
				fields = append(fields, facts.FieldPlace{name, place})
			}
			fields = append(fields, p.fieldsOfPart(fn, store.Val, name)...)
		}
	}
	return fields
}

func (p *Package) fieldsOfPart(fn *ssa.Function, v ssa.Value, name string) (fields []facts.FieldPlace) {
	call, ok := values.Bare(v).(*ssa.Call)
	if !ok {
		return nil
	}
	known := p.Known.Of(call)
	if known == nil || len(known.Results) == 0 {
		return nil
	}
	const most = 32
	for _, inner := range known.Results[0].Fields {
		if place, ok := flow.PlaceOf(fn, p.Chains.At(call, inner.Place)); ok && len(fields) < most {
			fields = append(fields, facts.FieldPlace{name + "." + inner.Name, place})
		}
	}
	return fields
}
