// Package effects finds what a function does outside of the database: requests, files, sleeps, waits.
package effects

import (
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

// Effects finds what the functions of a package do outside of the database.
type Effects struct {
	pkg   *types.Package
	order *flow.Order
	known *facts.Known
}

// New returns the effects of a package.
func New(pkg *types.Package, order *flow.Order, known *facts.Known) *Effects {
	return &Effects{pkg, order, known}
}

// deepest is how many calls away an effect is still told of.
const deepest = 2

// Of returns the effects of fn and of what it calls.
func (es *Effects) Of(fn *ssa.Function) (found []facts.Effect) {
	for _, part := range es.order.RunBy(fn) {
		for instr := range calls.Instructions(part) {
			for _, e := range es.At(instr) {
				if e.Depth++; e.Depth <= deepest {
					found = with(found, e)
				}
			}
		}
	}
	return found
}

// At returns the effects of one instruction.
func (es *Effects) At(instr ssa.Instruction) []facts.Effect {
	switch instr := instr.(type) {
	case *ssa.UnOp:
		if instr.Op.String() == "<-" {
			return []facts.Effect{{Kind: facts.Wait, What: "a receive"}}
		}
	case *ssa.Select:
		if instr.Blocking {
			return []facts.Effect{{Kind: facts.Wait, What: "a select"}}
		}
	case *ssa.Go:
		return nil
	case ssa.CallInstruction:
		return es.ofCall(instr)
	}
	return nil
}

func (es *Effects) ofCall(call ssa.CallInstruction) []facts.Effect {
	name := calls.Name(call)
	if kind := of(name); kind != 0 {
		return []facts.Effect{{Kind: kind, What: name.Show()}}
	}
	if kind := answersBy(call); kind != 0 {
		return []facts.Effect{{Kind: kind, What: name.Show()}}
	}
	known := es.known.Of(call)
	if known == nil {
		return nil
	}
	var found []facts.Effect
	for _, e := range known.Does {
		if e.Kind == facts.Wait && calls.Callee(call).Pkg() != es.pkg {
			continue // what other packages wait for is their own affair: a pool, a limiter
		}
		e.What = name.Name + ", which calls " + e.What
		found = append(found, e)
	}
	return found
}

// answersBy returns Answer of a call that writes into an http.ResponseWriter: fmt.Fprintf(w, …), json.NewEncoder(w).
func answersBy(call ssa.CallInstruction) facts.EffectKind {
	name := calls.Name(call)
	if name.Pkg != "fmt" && name.Pkg != "io" && name.Pkg != "encoding/json" || len(call.Common().Args) == 0 {
		return 0
	}
	for _, arg := range call.Common().Args {
		if converted, ok := arg.(*ssa.ChangeInterface); ok && gormapi.Is(converted.X.Type(), "net/http", "ResponseWriter") {
			return facts.Answer
		}
	}
	return 0
}

func with(found []facts.Effect, e facts.Effect) []facts.Effect {
	const most = 8
	for _, have := range found {
		if have.Kind == e.Kind {
			return found
		}
	}
	if len(found) < most {
		found = append(found, e)
	}
	return found
}
