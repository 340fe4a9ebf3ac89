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

// Handover is a function that is given to Transaction, Do or their like.
type Handover struct {
	Kind     gormapi.Kind
	Site     ssa.CallInstruction // where it is given
	In       *ssa.Function       // the function that the site is in
	Fn       *ssa.Function       // the function that is given
	Base     []flow.Chain        // the db that the transaction is begun on
	Ctx      ssa.Value           // the ctx beside the function, nil where there is none
	DB       *ssa.Parameter      // the db that the function is given
	GivenCtx *ssa.Parameter      // the ctx that the function is given
	Locks    bool                // the transaction begins with a lock
	Attempts bool                // the function may run again
	Options  []ssa.Value

	recv ssa.Value           // of a method's value
	via  ssa.CallInstruction // the call that returned the function
}

// Transacts reports whether the function runs in a transaction.
func (h *Handover) Transacts() bool {
	return h.Kind == gormapi.GormTransaction || h.Kind == gormapi.LockTransaction || h.Kind == gormapi.OnceKind
}

// Handovers returns the functions that the package hands to transactions and locks.
func (p *Package) Handovers() []*Handover { return p.handovers }

// IsGiven reports whether a value is the db that a transaction gave to its function.
func (p *Package) IsGiven(o flow.Origin) bool {
	if o.Kind != flow.Param || o.Path != "" {
		return false
	}
	return slices.ContainsFunc(p.handovers, func(h *Handover) bool {
		return h.DB != nil && h.Fn == o.Fn && h.Transacts() && o.Fn.Params[o.Index] == h.DB
	})
}

func (p *Package) findHandovers() {
	for _, fn := range p.Funcs {
		for call := range calls.In(fn) {
			h, given := p.handoverAt(call)
			if h == nil || !p.resolve(h, given) {
				continue
			}
			p.addHandover(h, fn)
			for _, inner := range p.wrapped(h) {
				p.addHandover(inner, fn)
			}
		}
	}
}

func (p *Package) addHandover(h *Handover, in *ssa.Function) {
	h.In = in
	for _, param := range h.Fn.Params {
		switch {
		case h.recv != nil && param == h.Fn.Params[0]:
		case gormapi.IsDB(param.Type()) && h.DB == nil:
			h.DB = param
		case gormapi.IsContext(param.Type()) && h.GivenCtx == nil:
			h.GivenCtx = param
		}
	}
	p.handovers = append(p.handovers, h)
}

// wrapped returns the functions that the function calls which is given, where that was made around them:
// logged(handle).
func (p *Package) wrapped(h *Handover) (all []*Handover) {
	if h.via == nil {
		return nil
	}
	wrapper := calls.Body(h.via.Common().StaticCallee())
	for call := range calls.In(h.Fn) {
		o, ok := p.Chains.Origin(call.Common().Value)
		if !ok || o.Kind != flow.Param || o.Fn != wrapper || o.Path != "" || o.Index >= len(calls.Params(h.via)) {
			continue
		}
		inner := *h
		inner.Fn, inner.DB, inner.GivenCtx, inner.recv, inner.via = nil, nil, nil, nil, nil
		if p.resolve(&inner, calls.Params(h.via)[o.Index]) {
			all = append(all, &inner)
		}
	}
	return all
}

// handoverAt returns what a call does with a function that it is given, and the function. A ctx of a transaction is not
// one that the function has to use.
func (p *Package) handoverAt(call ssa.CallInstruction) (h *Handover, given ssa.Value) {
	args := calls.Args(call)
	if handed, ok := gormapi.HandedTo(calls.Name(call)); ok && handed.Fn < len(args) && calls.Name(call).Name != "Connection" {
		h = &Handover{Kind: handed.Kind, Site: call}
		switch {
		case handed.Base == -1:
			h.Base = p.Chains.Of(calls.Receiver(call))
		case handed.Base >= 0 && gormapi.IsContext(args[handed.Base].Type()):
			h.Ctx = args[handed.Base]
		case handed.Base >= 0:
			h.Base = p.Chains.Of(args[handed.Base])
		}
		if handed.Kind == gormapi.LockTransaction {
			h.Options = p.Variables.Elements(args[2])
			h.readOptions(p)
		}
		return h, args[handed.Fn]
	}
	known := p.Known.Of(call)
	if known == nil {
		return nil, nil
	}
	for _, hands := range known.Hands {
		if hands.Fn >= len(calls.Params(call)) {
			continue
		}
		h = &Handover{Kind: hands.Kind, Site: call, Locks: hands.Locks, Attempts: hands.Attempts}
		if hands.HasBase {
			h.Base = p.Chains.At(call, hands.Base)
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

func (h *Handover) readOptions(p *Package) {
	for _, option := range h.Options {
		if p.Carries.OfPart(option).OurLocks() {
			h.Locks = true
		}
		if made, ok := values.Bare(option).(*ssa.Call); ok && calls.Name(made).Name == "Attempts" && calls.Name(made).Pkg == gormapi.Gormlock {
			n, isConst := made.Call.Args[0].(*ssa.Const)
			h.Attempts = !isConst || n.Value == nil || n.Int64() > 1
		}
	}
}

// resolve finds the function that a value is: a literal, a method of a value, a function, or what one of them returned.
func (p *Package) resolve(h *Handover, given ssa.Value) bool {
	chains := p.Chains.Of(given)
	if len(chains) != 1 || chains[0].Root.Kind != flow.Local || chains[0].Root.Path != "" {
		return false
	}
	switch v := chains[0].Root.Value.(type) {
	case *ssa.MakeClosure:
		fn := v.Fn.(*ssa.Function)
		if strings.HasSuffix(fn.Name(), "$bound") && len(v.Bindings) == 1 {
			h.recv = v.Bindings[0]
			fn = calls.Body(fn)
		}
		h.Fn = fn
	case *ssa.Function:
		h.Fn = calls.Body(v)
	case *ssa.Call:
		callee := v.Call.StaticCallee()
		if h.via != nil || callee == nil {
			return false
		}
		callee = calls.Body(callee)
		h.via = v
		if returned := calls.OnlyReturn(callee); returned != nil {
			return p.resolve(h, returned)
		}
	}
	return h.Fn != nil && slices.Contains(p.Funcs, h.Fn)
}

// Outside returns an origin as the function sees it that the site is in: the receiver of a method's value is what it is
// there.
func (p *Package) Outside(h *Handover, o flow.Origin) flow.Origin {
	if o.Kind != flow.Param {
		return o
	}
	var chains []flow.Chain
	switch {
	case h.recv != nil && o.Fn == h.Fn && o.Index == 0:
		chains = p.Chains.Of(h.recv)
	case h.via != nil && o.Fn == calls.Body(h.via.Common().StaticCallee()):
		chains = p.Chains.At(h.via, facts.Place{Param: o.Index})
	}
	if len(chains) == 1 {
		outer := chains[0].Root
		outer.Path += o.Path
		return outer
	}
	return o
}

// handedBy returns the functions among its parameters that fn runs in a transaction or under a lock.
func (p *Package) handedBy(fn *ssa.Function) (found []facts.Hands) {
	at := p.Order.RunBy(fn)
	parts := slices.Concat(at, p.returnedLiterals(fn))
	for i, part := range parts {
		for call := range calls.In(part) {
			h, given := p.handoverAt(call)
			if h == nil {
				continue
			}
			hands := facts.Hands{Kind: h.Kind, Locks: h.Locks, Attempts: h.Attempts, Later: i >= len(at)}
			hands.Base, hands.HasBase = flow.PlaceOf(fn, h.Base)
			if o, ok := p.Chains.Origin(given); ok && o.IsParam(fn) {
				hands.Fn, hands.DB, hands.Ctx = o.Index, h.Transacts(), h.Kind == gormapi.DoKind || h.Kind == gormapi.WorkKind
				found = append(found, hands)
				continue
			}
			if literal := p.Chains.Literal(given); literal != nil {
				found = append(found, p.calledBy(fn, literal, hands)...)
			}
		}
	}
	return found
}

// returnedLiterals returns the function literals that fn returns, as a wrapper of handlers does, with those that they run
// or return.
func (p *Package) returnedLiterals(fn *ssa.Function) (all []*ssa.Function) {
	pending := []*ssa.Function{fn}
	for i := 0; i < len(pending); i++ {
		for instr := range calls.Instructions(pending[i]) {
			returned, ok := instr.(*ssa.Return)
			if !ok || len(returned.Results) == 0 {
				continue
			}
			if literal := p.Chains.Literal(values.Bare(returned.Results[0])); literal != nil && !slices.Contains(pending, literal) {
				pending = append(pending, literal)
				all = append(all, p.Order.RunBy(literal)...)
			}
		}
	}
	return all
}

// calledBy returns the functions among the parameters of fn that a literal calls.
func (p *Package) calledBy(fn, literal *ssa.Function, hands facts.Hands) (found []facts.Hands) {
	for call := range calls.In(literal) {
		common := call.Common()
		if common.IsInvoke() || common.StaticCallee() != nil {
			continue
		}
		o, ok := p.Chains.Origin(common.Value)
		if !ok || o.Kind != flow.Param || o.Fn != fn || o.Path != "" {
			continue
		}
		hands.Fn = o.Index
		for _, arg := range common.Args {
			if gormapi.IsDB(arg.Type()) {
				hands.DB = true
			}
			if gormapi.IsContext(arg.Type()) {
				from, known := p.Chains.Origin(arg)
				hands.Ctx = !known || from.Kind != flow.Param || from.Fn != fn
			}
		}
		found = append(found, hands)
	}
	return found
}

// IsReceiver reports whether a parameter of the function is the receiver of a method's value.
func (h *Handover) IsReceiver(index int) bool { return h.recv != nil && index == 0 }
