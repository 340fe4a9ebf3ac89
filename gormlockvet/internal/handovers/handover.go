// Package handovers finds the functions that a package gives to Transaction, Do and their like, and what they are given
// in turn.
package handovers

import (
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

// Handover is a call of Transaction, Do or their like, and the function that it is given.
type Handover struct {
	Kind     gormapi.Kind
	Site     ssa.CallInstruction
	In       *ssa.Function // the function that the site is in
	Base     []flow.Chain  // the db that the transaction is begun on
	Ctx      ssa.Value     // the ctx beside the function, nil where there is none
	Locks    bool          // the transaction begins with a lock
	Attempts bool          // the function may run again
	Options  []ssa.Value
	Given    Given
}

// Given is a function that is handed over, as a value, with those of its parameters that matter.
type Given struct {
	Fn  *ssa.Function
	DB  *ssa.Parameter
	Ctx *ssa.Parameter

	recv ssa.Value // of a method's value
	via  *ssa.Call // the call that returned the function
}

// Transacts reports whether the function runs in a transaction.
func (h *Handover) Transacts() bool {
	return h.Kind == gormapi.GormTransaction || h.Kind == gormapi.LockTransaction || h.Kind == gormapi.OnceKind
}

// IsReceiver reports whether a parameter of the function is the receiver of a method's value.
func (g *Given) IsReceiver(index int) bool { return g.recv != nil && index == 0 }

// maker returns the function that returned the given one, nil where none did.
func (g *Given) maker() *ssa.Function {
	if g.via == nil {
		return nil
	}
	return calls.Body(g.via.Call.StaticCallee())
}

// readParams finds the db and the ctx among the parameters.
func (g *Given) readParams() {
	for i, param := range g.Fn.Params {
		switch {
		case g.IsReceiver(i):
		case gormapi.IsDB(param.Type()) && g.DB == nil:
			g.DB = param
		case gormapi.IsContext(param.Type()) && g.Ctx == nil:
			g.Ctx = param
		}
	}
}
