package calls

import (
	"go/types"
	"iter"

	"golang.org/x/tools/go/ssa"
)

// Instructions yields the instructions of a function.
func Instructions(fn *ssa.Function) iter.Seq[ssa.Instruction] {
	return func(yield func(ssa.Instruction) bool) {
		for _, block := range fn.Blocks {
			for _, instr := range block.Instrs {
				if !yield(instr) {
					return
				}
			}
		}
	}
}

// In yields the calls of a function, go and defer statements included.
func In(fn *ssa.Function) iter.Seq[ssa.CallInstruction] {
	return func(yield func(ssa.CallInstruction) bool) {
		for instr := range Instructions(fn) {
			if call, ok := instr.(ssa.CallInstruction); ok && !yield(call) {
				return
			}
		}
	}
}

// Family returns the function that declares the literals around fn, with all literals in it.
func Family(fn *ssa.Function) (all []*ssa.Function) {
	for fn.Parent() != nil {
		fn = fn.Parent()
	}
	all = append(all, fn)
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].AnonFuncs...)
	}
	return all
}

// Declared returns what fn is in the source: of an instance the generic function, of a method value's wrapper the method.
func Declared(fn *ssa.Function) *types.Func {
	if origin := fn.Origin(); origin != nil {
		fn = origin
	}
	object, _ := fn.Object().(*types.Func)
	if object != nil {
		object = object.Origin()
	}
	return object
}

// Body returns the function that a function's value runs: of a method value's wrapper the method.
func Body(fn *ssa.Function) *ssa.Function {
	if object := Declared(fn); object != nil {
		if own := fn.Prog.FuncValue(object); own != nil {
			return own
		}
	}
	return fn
}

// OnlyReturn returns what a function returns that has one result and one return.
func OnlyReturn(fn *ssa.Function) (v ssa.Value) {
	for instr := range Instructions(fn) {
		if returned, ok := instr.(*ssa.Return); ok {
			if v != nil || len(returned.Results) != 1 {
				return nil
			}
			v = returned.Results[0]
		}
	}
	return v
}
