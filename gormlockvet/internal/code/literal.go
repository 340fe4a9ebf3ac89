package code

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

// RunBy returns fn and the function literals that run while it does: those it calls, defers or gives to what runs them
// at once. Not those of a go statement, and not those that something may keep for later.
func (p *Package) RunBy(fn *ssa.Function) []*ssa.Function {
	all := []*ssa.Function{fn}
	for i := 0; i < len(all); i++ {
		for call := range calls.In(all[i]) {
			if _, later := call.(*ssa.Go); later {
				continue
			}
			for _, v := range p.runAtOnce(call) {
				if literal := p.literal(v); literal != nil && !slices.Contains(all, literal) {
					all = append(all, literal)
				}
			}
		}
	}
	return all
}

// runAtOnce returns the functions that a call runs before it returns.
func (p *Package) runAtOnce(call ssa.CallInstruction) (run []ssa.Value) {
	common := call.Common()
	if !common.IsInvoke() && common.StaticCallee() == nil {
		run = []ssa.Value{common.Value}
		for _, arg := range common.Args { // a range over an iterator
			if literal := p.literal(arg); literal != nil && strings.HasPrefix(literal.Synthetic, "range-over-func") {
				run = append(run, arg)
			}
		}
		return run
	}
	if fn := common.StaticCallee(); fn != nil && fn.Parent() != nil {
		return []ssa.Value{common.Value}
	}
	name := calls.Name(call)
	if handed, ok := gormapi.HandedTo(name); ok && handed.Kind != gormapi.WorkKind && handed.Fn < len(calls.Args(call)) {
		run = append(run, calls.Args(call)[handed.Fn])
	}
	if name.Pkg == gormapi.Gorm && name.Name == "FindInBatches" || name == (gormapi.Func{Pkg: "sync", Recv: "Once", Name: "Do"}) {
		run = append(run, common.Args[len(common.Args)-1])
	}
	if known := p.Known.Of(call); known != nil {
		for _, hands := range known.Hands {
			if args := calls.Params(call); hands.Fn < len(args) && !hands.Later {
				run = append(run, args[hands.Fn])
			}
		}
	}
	for _, arg := range common.Args {
		if literal := p.literal(arg); literal != nil && strings.HasPrefix(literal.Synthetic, "range-over-func") {
			run = append(run, arg)
		}
	}
	return run
}

// literal returns the function literal that a value is.
func (p *Package) literal(v ssa.Value) *ssa.Function {
	var fn *ssa.Function
	switch v := v.(type) {
	case *ssa.MakeClosure:
		fn, _ = v.Fn.(*ssa.Function)
	case *ssa.Function:
		fn = v
	default:
		if chains := p.Chains(v); len(chains) == 1 && chains[0].Root.Kind == Local && chains[0].Root.Path == "" {
			switch made := chains[0].Root.Value.(type) {
			case *ssa.MakeClosure:
				fn, _ = made.Fn.(*ssa.Function)
			case *ssa.Function:
				fn = made
			}
		}
	}
	if fn == nil || fn.Parent() == nil {
		return nil
	}
	return fn
}
