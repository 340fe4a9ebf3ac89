package code

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

// growthOf returns which slices, reached by its parameters, a function appends to that is given the db of a transaction:
// it keeps in memory what it writes, or what is to be done when that is stored.
func (sz *summarizer) growthOf(fn *ssa.Function) (grown []facts.Place) {
	if !slices.ContainsFunc(fn.Params, func(v *ssa.Parameter) bool { return gormapi.IsDB(v.Type()) }) {
		return nil
	}
	const most = 4
	anew := map[facts.Place]bool{}
	for _, part := range sz.Order.RunBy(fn) {
		for instr := range calls.Instructions(part) {
			store, ok := instr.(*ssa.Store)
			if !ok {
				continue
			}
			v, ok := sz.Variables.At(store.Addr)
			if !ok || v.Origin.Kind != flow.Param || v.Origin.Fn != fn {
				continue
			}
			at := facts.Place{Param: v.Origin.Index, Path: v.Origin.Path}
			if !sz.Variables.GrowsFrom(store.Val, store.Addr) {
				anew[at] = true
			} else if _, appends := store.Val.(*ssa.Call); appends && len(grown) < most && !slices.Contains(grown, at) {
				grown = append(grown, at)
			}
		}
	}
	return slices.DeleteFunc(grown, func(at facts.Place) bool { return anew[at] })
}
