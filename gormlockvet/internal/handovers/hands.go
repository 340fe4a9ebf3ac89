package handovers

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// By returns the functions among its parameters that fn runs in a transaction or under a lock.
func (hs *Handovers) By(fn *ssa.Function) (found []facts.Hands) {
	at := hs.order.RunBy(fn)
	parts := slices.Concat(at, hs.returnedLiterals(fn))
	for i, part := range parts {
		for call := range calls.In(part) {
			h, given := hs.at(call)
			if h == nil {
				continue
			}
			hands := facts.Hands{Kind: h.Kind, Locks: h.Locks, Attempts: h.Attempts, Later: i >= len(at)}
			hands.Base, hands.HasBase = flow.PlaceOf(fn, h.Base)
			if o, ok := hs.chains.Origin(given); ok && o.IsParam(fn) {
				hands.Fn, hands.DB, hands.Ctx = o.Index, h.Transacts(), h.Kind == gormapi.DoKind || h.Kind == gormapi.WorkKind
				found = append(found, hands)
				continue
			}
			if literal := hs.chains.Literal(given); literal != nil {
				found = append(found, hs.calledBy(fn, literal, hands)...)
			}
		}
	}
	return found
}

// returnedLiterals returns the function literals that fn returns, as a wrapper of handlers does, with those that they run
// or return.
func (hs *Handovers) returnedLiterals(fn *ssa.Function) (all []*ssa.Function) {
	pending := []*ssa.Function{fn}
	for i := 0; i < len(pending); i++ {
		for instr := range calls.Instructions(pending[i]) {
			returned, ok := instr.(*ssa.Return)
			if !ok || len(returned.Results) == 0 {
				continue
			}
			if literal := hs.chains.Literal(values.Bare(returned.Results[0])); literal != nil && !slices.Contains(pending, literal) {
				pending = append(pending, literal)
				all = append(all, hs.order.RunBy(literal)...)
			}
		}
	}
	return all
}

// calledBy returns the functions among the parameters of fn that a literal calls.
func (hs *Handovers) calledBy(fn, literal *ssa.Function, hands facts.Hands) (found []facts.Hands) {
	for call := range calls.In(literal) {
		common := call.Common()
		if common.IsInvoke() || common.StaticCallee() != nil {
			continue
		}
		o, ok := hs.chains.Origin(common.Value)
		if !ok || !o.IsParam(fn) {
			continue
		}
		hands.Fn = o.Index
		for _, arg := range common.Args {
			if gormapi.IsDB(arg.Type()) {
				hands.DB = true
			}
			if gormapi.IsContext(arg.Type()) {
				from, known := hs.chains.Origin(arg)
				hands.Ctx = !known || from.Kind != flow.Param || from.Fn != fn
			}
		}
		found = append(found, hands)
	}
	return found
}
