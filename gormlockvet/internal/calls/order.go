package calls

import (
	"slices"

	"golang.org/x/tools/go/ssa"
)

// Dominates reports whether a runs, in their function, whenever b does, and before it. One that is b itself does too.
func Dominates(a, b ssa.Instruction) bool {
	if a.Block() == b.Block() {
		for _, instr := range a.Block().Instrs {
			switch instr {
			case a:
				return true
			case b:
				return false
			}
		}
	}
	return a.Block() != nil && b.Block() != nil && a.Block().Dominates(b.Block())
}

// ReachableFrom reports whether b can run after a, in one function.
func ReachableFrom(a, b ssa.Instruction) bool {
	if a.Parent() != b.Parent() {
		return false
	}
	if a.Block() == b.Block() && Dominates(a, b) {
		return true
	}
	seen := map[*ssa.BasicBlock]bool{}
	queue := slices.Clone(a.Block().Succs)
	for len(queue) > 0 {
		block := queue[0]
		queue = queue[1:]
		if block == b.Block() {
			return true
		}
		if !seen[block] {
			seen[block] = true
			queue = append(queue, block.Succs...)
		}
	}
	return false
}
