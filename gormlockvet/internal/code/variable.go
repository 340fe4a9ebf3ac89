package code

import (
	"slices"

	"golang.org/x/tools/go/ssa"
)

// binding returns what a function literal captured.
func (p *Package) binding(v *ssa.FreeVar) ssa.Value {
	made := p.closures[v.Parent()]
	if made == nil {
		return nil
	}
	if i := slices.Index(v.Parent().FreeVars, v); i >= 0 && i < len(made.Bindings) {
		return made.Bindings[i]
	}
	return nil
}

// storesTo returns what is assigned to a variable, in function literals too.
func (p *Package) storesTo(addr ssa.Value) []ssa.Value {
	if found, ok := p.stores[addr]; ok {
		return found
	}
	var found []ssa.Value
	for _, use := range p.usesOf(addr) {
		if store, ok := use.(*ssa.Store); ok {
			found = append(found, store.Val)
		}
	}
	p.stores[addr] = found
	return found
}

// usesOf returns the uses of a variable's address, in function literals that captured it too.
func (p *Package) usesOf(addr ssa.Value) []ssa.Instruction {
	if addr.Referrers() == nil {
		return nil
	}
	var uses []ssa.Instruction
	for _, use := range *addr.Referrers() {
		switch use := use.(type) {
		case *ssa.Store:
			if use.Addr == addr {
				uses = append(uses, use)
			}
		case *ssa.MakeClosure:
			for i, bound := range use.Bindings {
				if bound == addr {
					uses = append(uses, p.usesOf(use.Fn.(*ssa.Function).FreeVars[i])...)
				}
			}
		default:
			uses = append(uses, use)
		}
	}
	return uses
}
