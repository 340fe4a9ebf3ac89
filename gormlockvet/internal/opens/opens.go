// Package opens finds the dbs that a program opens, and whether they meet the plugin.
package opens

import (
	"fmt"
	"go/token"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Opens finds the dbs that a package opens, and whether the plugin is installed on them.
type Opens struct {
	pass   *analysis.Pass
	chains *flow.Chains
	order  *flow.Order
	known  *facts.Known
}

// New returns the dbs that a package opens.
func New(pass *analysis.Pass, chains *flow.Chains, order *flow.Order, known *facts.Known) *Opens {
	return &Opens{pass, chains, order, known}
}

// At is an Open that a function makes, or calls.
type At struct {
	facts.Open
	Pos   token.Pos // in this package
	Here  bool      // opened here, not by a function that is called
	Enter bool      // the call is where the program leaves this package for the one that opens
}

// In returns the dbs that fn, or a function it calls, opens without the plugin and does not return.
func (ops *Opens) In(fn *ssa.Function) (all []At) {
	for _, part := range ops.order.RunBy(fn) {
		for call := range calls.In(part) {
			if o, ok := ops.opened(call); ok {
				if !ops.Installed(fn, o) && !ops.returned(fn, o) {
					all = append(all, At{facts.Open{Where: ops.where(call.Pos()), Kept: kept(o)}, call.Pos(), true, true})
				}
				continue
			}
			if known := ops.known.Of(call); known != nil {
				for _, open := range known.Opens {
					all = append(all, At{open, call.Pos(), false, calls.Callee(call).Pkg() != ops.pass.Pkg})
				}
			}
		}
	}
	return all
}

// opened returns the db that a call opens, or that a function opened which it calls.
func (ops *Opens) opened(call ssa.CallInstruction) (flow.Origin, bool) {
	value, ok := call.(*ssa.Call)
	if !ok {
		return flow.Origin{}, false
	}
	if calls.Name(call) == (gormapi.Func{Pkg: gormapi.Gorm, Name: "Open"}) {
		return flow.Origin{Kind: flow.Opened, Value: value}, plainConfig(value)
	}
	known := ops.known.Of(call)
	if known == nil {
		return flow.Origin{}, false
	}
	for i, result := range known.Results {
		if result.Opened {
			return flow.ResultOf(value, i), !result.Used
		}
	}
	return flow.Origin{}, false
}

// plainConfig reports whether nothing in the options of gorm.Open can install a plugin, or keeps the db from writing.
func plainConfig(open *ssa.Call) bool {
	options, ok := values.Variadic(open.Call.Args[1])
	if !ok {
		return false
	}
	for _, option := range options {
		if !gormapi.Is(values.Bare(option).Type(), gormapi.Gorm, "Config") {
			return false
		}
		alloc, isLiteral := values.Bare(option).(*ssa.Alloc)
		if !isLiteral {
			continue
		}
		for _, use := range *alloc.Referrers() {
			if at, isField := use.(*ssa.FieldAddr); isField {
				if name := values.Field(at); name == "DryRun" || name == "Plugins" {
					return false
				}
			}
		}
	}
	return true
}

func (ops *Opens) where(pos token.Pos) string {
	at := ops.pass.Fset.Position(pos)
	return fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line)
}

// returned reports whether fn returns the db, so that its callers have to see to it.
func (ops *Opens) returned(fn *ssa.Function, opened flow.Origin) bool {
	for instr := range calls.Instructions(fn) {
		result, ok := instr.(*ssa.Return)
		if !ok {
			continue
		}
		for _, v := range result.Results {
			if gormapi.IsDB(v.Type()) && slices.ContainsFunc(ops.chains.Of(v), func(c flow.Chain) bool { return c.Root == opened }) {
				return true
			}
		}
	}
	return false
}

// kept reports whether anything but GORM's own methods gets the db.
func kept(opened flow.Origin) bool {
	call := opened.Value.(*ssa.Call)
	same := []ssa.Value{call}
	for i := 0; i < len(same); i++ {
		for _, use := range *same[i].Referrers() {
			switch use := use.(type) {
			case *ssa.Extract:
				if gormapi.IsDB(use.Type()) {
					same = append(same, use)
				}
			case *ssa.Phi:
				if !slices.Contains(same, ssa.Value(use)) {
					same = append(same, use)
				}
			case ssa.CallInstruction:
				if name := calls.Name(use); name.Pkg != gormapi.Gorm && name.Pkg != gormapi.Gormlock {
					return true
				}
			case *ssa.Store:
				if alloc, ok := use.Addr.(*ssa.Alloc); !ok || alloc.Heap {
					return true
				}
			case *ssa.FieldAddr, *ssa.If, *ssa.BinOp, *ssa.DebugRef:
			default:
				return true
			}
		}
	}
	return false
}
