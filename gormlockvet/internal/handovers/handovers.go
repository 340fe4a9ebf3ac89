package handovers

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/statements"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Handovers finds the functions that a package hands over.
type Handovers struct {
	funcs     []*ssa.Function
	variables *flow.Variables
	chains    *flow.Chains
	order     *flow.Order
	known     *facts.Known
	carries   *statements.Carries
	found     []*Handover
}

// New returns the handovers of a package, which Find finds.
func New(
	funcs []*ssa.Function, variables *flow.Variables, chains *flow.Chains, order *flow.Order, known *facts.Known, carries *statements.Carries,
) *Handovers {
	return &Handovers{funcs: funcs, variables: variables, chains: chains, order: order, known: known, carries: carries}
}

// All returns what was found.
func (hs *Handovers) All() []*Handover { return hs.found }

// IsGiven reports whether a value is the db that a transaction gave to its function.
func (hs *Handovers) IsGiven(o flow.Origin) bool {
	if o.Kind != flow.Param || o.Path != "" {
		return false
	}
	return slices.ContainsFunc(hs.found, func(h *Handover) bool {
		return h.Given.DB != nil && h.Given.Fn == o.Fn && h.Transacts() && o.Fn.Params[o.Index] == h.Given.DB
	})
}

// Find looks for all of them, when everything is known of the functions of the package.
func (hs *Handovers) Find() {
	for _, fn := range hs.funcs {
		for call := range calls.In(fn) {
			h, given := hs.at(call)
			if h == nil || !hs.resolve(&h.Given, given) {
				continue
			}
			h.In = fn
			hs.found = append(hs.found, h)
			hs.found = append(hs.found, hs.wrapped(h)...)
		}
	}
}

// wrapped returns the functions that the function calls which is given, where that was made around them:
// logged(handle).
func (hs *Handovers) wrapped(h *Handover) (all []*Handover) {
	maker := h.Given.maker()
	if maker == nil {
		return nil
	}
	given := calls.Params(h.Given.via)
	for call := range calls.In(h.Given.Fn) {
		o, ok := hs.chains.Origin(call.Common().Value)
		if !ok || !o.IsParam(maker) || o.Index >= len(given) {
			continue
		}
		inner := *h
		inner.Given = Given{}
		if hs.resolve(&inner.Given, given[o.Index]) {
			all = append(all, &inner)
		}
	}
	return all
}

// at returns what a call does with a function that it is given, and the function. A ctx of a transaction is not one that
// the function has to use.
func (hs *Handovers) at(call ssa.CallInstruction) (h *Handover, given ssa.Value) {
	args := calls.Args(call)
	if handed, ok := gormapi.HandedTo(calls.Name(call)); ok && handed.Fn < len(args) && calls.Name(call).Name != "Connection" {
		h = &Handover{Kind: handed.Kind, Site: call}
		switch {
		case handed.Base == -1:
			h.Base = hs.chains.Of(calls.Receiver(call))
		case handed.Base >= 0 && gormapi.IsContext(args[handed.Base].Type()):
			h.Ctx = args[handed.Base]
		case handed.Base >= 0:
			h.Base = hs.chains.Of(args[handed.Base])
		}
		if handed.Kind == gormapi.LockTransaction {
			h.Options = hs.variables.Elements(args[2])
			hs.readOptions(h)
		}
		return h, args[handed.Fn]
	}
	known := hs.known.Of(call)
	if known == nil {
		return nil, nil
	}
	for _, hands := range known.Hands {
		if hands.Fn >= len(calls.Params(call)) {
			continue
		}
		h = &Handover{Kind: hands.Kind, Site: call, Locks: hands.Locks, Attempts: hands.Attempts}
		if hands.HasBase {
			h.Base = hs.chains.At(call, hands.Base)
		}
		if hands.Ctx {
			for _, arg := range args {
				if gormapi.IsContext(arg.Type()) {
					h.Ctx = arg
				}
			}
		}
		return h, calls.Params(call)[hands.Fn]
	}
	return nil, nil
}

func (hs *Handovers) readOptions(h *Handover) {
	for _, option := range h.Options {
		if hs.carries.OfPart(option).OurLocks() {
			h.Locks = true
		}
		if made, ok := values.Bare(option).(*ssa.Call); ok && calls.Name(made).Name == "Attempts" && calls.Name(made).Pkg == gormapi.Gormlock {
			n, isConst := made.Call.Args[0].(*ssa.Const)
			h.Attempts = !isConst || n.Value == nil || n.Int64() > 1
		}
	}
}

// resolve finds the function that a value is: a literal, a method of a value, a function, or what one of them returned.
func (hs *Handovers) resolve(g *Given, value ssa.Value) bool {
	switch v := hs.chains.Made(value).(type) {
	case *ssa.MakeClosure:
		g.Fn = v.Fn.(*ssa.Function)
		if strings.HasSuffix(g.Fn.Name(), "$bound") && len(v.Bindings) == 1 {
			g.recv, g.Fn = v.Bindings[0], calls.Body(g.Fn)
		}
	case *ssa.Function:
		g.Fn = calls.Body(v)
	case *ssa.Call:
		callee := v.Call.StaticCallee()
		if g.via != nil || callee == nil {
			return false
		}
		g.via = v
		if returned := calls.OnlyReturn(calls.Body(callee)); returned != nil {
			return hs.resolve(g, returned)
		}
	}
	if g.Fn == nil || !slices.Contains(hs.funcs, g.Fn) {
		return false
	}
	g.readParams()
	return true
}

// Outside returns an origin as the function sees it that the site is in: the receiver of a method's value is what it is
// there.
func (hs *Handovers) Outside(h *Handover, o flow.Origin) flow.Origin {
	if o.Kind != flow.Param {
		return o
	}
	var chains []flow.Chain
	switch {
	case h.Given.recv != nil && o.Fn == h.Given.Fn && o.Index == 0:
		chains = hs.chains.Of(h.Given.recv)
	case h.Given.via != nil && o.Fn == h.Given.maker():
		chains = hs.chains.At(h.Given.via, facts.Place{Param: o.Index})
	}
	if len(chains) == 1 {
		outer := chains[0].Root
		outer.Path += o.Path
		return outer
	}
	return o
}
