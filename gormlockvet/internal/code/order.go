package code

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Before reports whether a has surely run when b runs. Either may be in a function literal that runs at once: then it is
// where that is called, or handed over.
func (p *Package) Before(a, b ssa.Instruction) bool {
	before, after := p.around(a), p.around(b)
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
func (p *Package) Inside(instr ssa.Instruction, fn *ssa.Function) bool {
	return slices.ContainsFunc(p.around(instr), func(at ssa.Instruction) bool { return at.Parent() == fn })
}

// deepestLiteral bounds how far out a function literal is followed.
const deepestLiteral = 8

// around returns an instruction and the calls that run the function literals it is in, the innermost first.
func (p *Package) around(instr ssa.Instruction) []ssa.Instruction {
	all := []ssa.Instruction{instr}
	for range deepestLiteral {
		site := p.siteOf(all[len(all)-1].Parent())
		if site == nil {
			break
		}
		all = append(all, site)
	}
	return all
}

// siteOf returns the call that runs a function literal, nil where none is known, or several are.
func (p *Package) siteOf(literal *ssa.Function) ssa.Instruction {
	if literal.Parent() == nil {
		return nil
	}
	if p.sites == nil {
		p.sites = map[*ssa.Function]ssa.Instruction{}
		for _, fn := range p.Funcs {
			for call := range calls.In(fn) {
				if _, later := call.(*ssa.Go); later {
					continue
				}
				for _, v := range p.runAtOnce(call) {
					if run := p.literal(v); run != nil {
						p.sites[run] = call
					}
				}
			}
		}
	}
	return p.sites[literal]
}

// withoutDB reports whether an instruction runs only when fn is given no db: if tx == nil { … }.
func (p *Package) withoutDB(fn *ssa.Function, instr ssa.Instruction) bool {
	around := p.around(instr)
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
		o, ok := p.Origin(compared.X)
		if ok && o.Kind == Param && o.Fn == fn && o.Path == "" && len(without.Preds) == 1 && without.Dominates(at) {
			return true
		}
	}
	return false
}
