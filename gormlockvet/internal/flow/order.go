package flow

import (
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Order says which function literals run with a function, and what has run before something else does.
type Order struct {
	funcs  []*ssa.Function
	chains *Chains
	known  *facts.Known
	sites  map[*ssa.Function]ssa.Instruction
}

// NewOrder returns the order of what the functions of a package do.
func NewOrder(funcs []*ssa.Function, chains *Chains, known *facts.Known) *Order {
	return &Order{funcs: funcs, chains: chains, known: known}
}

// RunBy returns fn and the function literals that run while it does: those it calls, defers or gives to what runs them
// at once. Not those of a go statement, and not those that something may keep for later.
func (o *Order) RunBy(fn *ssa.Function) []*ssa.Function {
	all := []*ssa.Function{fn}
	for i := 0; i < len(all); i++ {
		for call := range calls.In(all[i]) {
			if _, later := call.(*ssa.Go); later {
				continue
			}
			for _, v := range o.runAtOnce(call) {
				if literal := o.chains.Literal(v); literal != nil && !slices.Contains(all, literal) {
					all = append(all, literal)
				}
			}
		}
	}
	return all
}

// runAtOnce returns the functions that a call runs before it returns.
func (o *Order) runAtOnce(call ssa.CallInstruction) (run []ssa.Value) {
	common := call.Common()
	if !common.IsInvoke() && common.StaticCallee() == nil {
		run = []ssa.Value{common.Value}
		for _, arg := range common.Args { // a range over an iterator
			if literal := o.chains.Literal(arg); literal != nil && strings.HasPrefix(literal.Synthetic, "range-over-func") {
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
	if known := o.known.Of(call); known != nil {
		for _, hands := range known.Hands {
			if args := calls.Params(call); hands.Fn < len(args) && !hands.Later {
				run = append(run, args[hands.Fn])
			}
		}
	}
	for _, arg := range common.Args {
		if literal := o.chains.Literal(arg); literal != nil && strings.HasPrefix(literal.Synthetic, "range-over-func") {
			run = append(run, arg)
		}
	}
	return run
}

// Before reports whether a has surely run when b runs. Either may be in a function literal that runs at once: then it is
// where that is called, or handed over.
func (o *Order) Before(a, b ssa.Instruction) bool {
	before, after := o.around(a), o.around(b)
	for _, x := range before {
		for _, y := range after {
			if x.Parent() == y.Parent() {
				return x != y && calls.Dominates(x, y)
			}
		}
	}
	return false
}

// Inside reports whether an instruction runs in fn, or in a function literal that fn runs.
func (o *Order) Inside(instr ssa.Instruction, fn *ssa.Function) bool {
	return slices.ContainsFunc(o.around(instr), func(at ssa.Instruction) bool { return at.Parent() == fn })
}

// deepestLiteral bounds how far out a function literal is followed.
const deepestLiteral = 8

// around returns an instruction and the calls that run the function literals it is in, the innermost first.
func (o *Order) around(instr ssa.Instruction) []ssa.Instruction {
	all := []ssa.Instruction{instr}
	for range deepestLiteral {
		site := o.siteOf(all[len(all)-1].Parent())
		if site == nil {
			break
		}
		all = append(all, site)
	}
	return all
}

// siteOf returns the call that runs a function literal, nil where none is known, or several are.
func (o *Order) siteOf(literal *ssa.Function) ssa.Instruction {
	if literal.Parent() == nil {
		return nil
	}
	if o.sites == nil {
		o.sites = map[*ssa.Function]ssa.Instruction{}
		for _, fn := range o.funcs {
			for call := range calls.In(fn) {
				if _, later := call.(*ssa.Go); later {
					continue
				}
				for _, v := range o.runAtOnce(call) {
					if run := o.chains.Literal(v); run != nil {
						o.sites[run] = call
					}
				}
			}
		}
	}
	return o.sites[literal]
}

// WithoutDB reports whether an instruction runs only when fn is given no db: if tx == nil { … }.
func (o *Order) WithoutDB(fn *ssa.Function, instr ssa.Instruction) bool {
	around := o.around(instr)
	at := around[len(around)-1].Block()
	if at == nil || at.Parent() != fn {
		return false
	}
	for _, block := range fn.Blocks {
		branch, ok := block.Instrs[len(block.Instrs)-1].(*ssa.If)
		if !ok {
			continue
		}
		compared, ok := branch.Cond.(*ssa.BinOp)
		if !ok || compared.Op != token.EQL && compared.Op != token.NEQ || !gormapi.IsDB(compared.X.Type()) {
			continue
		}
		if !values.Nil(compared.Y) {
			continue
		}
		without := block.Succs[0]
		if compared.Op == token.NEQ {
			without = block.Succs[1]
		}
		db, ok := o.chains.Origin(compared.X)
		if ok && db.IsParam(fn) && len(without.Preds) == 1 && without.Dominates(at) {
			return true
		}
	}
	return false
}
