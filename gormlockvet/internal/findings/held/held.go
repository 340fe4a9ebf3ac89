// Package held finds waits for the world outside in a transaction that holds a lock.
package held

import (
	"go/token"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/code"
	"github.com/gormlock/gormlock/gormlockvet/internal/effects"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/handovers"
)

// Analyzer is the finding.
var Analyzer = code.New("held", "find requests, sleeps and waits in a transaction that holds a lock\n\n"+
	"Everybody who wants the lock waits too, each with a connection of the pool: a slow partner stops the program.", run)

func run(pass *analysis.Pass, p *code.Package) {
	c := checker{pass: pass, p: p, effects: effects.New(pass.Pkg, p.Order, p.Known), reported: map[token.Pos]bool{}}
	for _, h := range p.Handovers.All() {
		if h.Transacts() {
			c.function(h)
		}
	}
	for _, fn := range p.Funcs {
		c.byHand(fn)
	}
}

type checker struct {
	pass     *analysis.Pass
	p        *code.Package
	effects  *effects.Effects
	reported map[token.Pos]bool
}

// function looks at a function that is given to a transaction.
func (c *checker) function(h *handovers.Handover) {
	parts := c.p.Order.RunBy(h.Given.Fn)
	var locks []ssa.Instruction
	for _, part := range parts {
		for call := range calls.In(part) {
			if c.locks(call, func(o flow.Origin) bool {
				return c.p.Handovers.IsGiven(o) || o == baseOf(h) && h.Kind == gormapi.OnceKind
			}) {
				locks = append(locks, call)
			}
		}
	}
	for _, part := range parts {
		for instr := range calls.Instructions(part) {
			held := h.Locks
			for _, lock := range locks {
				held = held || c.p.Order.Before(lock, instr)
			}
			if held {
				c.look(instr)
			}
		}
	}
}

func baseOf(h *handovers.Handover) flow.Origin {
	if len(h.Base) == 1 {
		return h.Base[0].Root
	}
	return flow.Origin{Kind: flow.Local}
}

// locks reports whether a call takes a lock in a transaction.
func (c *checker) locks(call ssa.CallInstruction, transaction func(flow.Origin) bool) bool {
	if s, ok := c.p.Statements.Of(call); ok {
		return c.p.Carries.Locks(s) && s.Role != gormapi.Begins && s.Name.Name != "Transaction" && all(s.On, transaction)
	}
	if known := c.p.Known.Of(call); known != nil {
		for _, at := range known.Locks {
			if all(c.p.Chains.At(call, at), transaction) {
				return true
			}
		}
	}
	return false
}

func all(on []flow.Chain, is func(flow.Origin) bool) bool {
	for _, chain := range on {
		if !is(chain.Root) {
			return false
		}
	}
	return len(on) > 0
}

// byHand looks at what follows a lock in a transaction that was begun by hand, or elsewhere: a query takes a lock of
// gormlock in a transaction or not at all.
func (c *checker) byHand(fn *ssa.Function) {
	for call := range calls.In(fn) {
		s, ok := c.p.Statements.Of(call)
		if !ok || !c.p.Carries.Locks(s) || len(s.On) != 1 || s.Name.Name == "Claim" {
			continue
		}
		root := s.On[0].Root
		certain := s.Ours() || s.Role == gormapi.Reads && c.p.Carries.Of(s.On[0]).OurLocks()
		if root.Kind != flow.Begun && !certain {
			continue
		}
		ends := c.ends(fn, root)
		for instr := range calls.Instructions(fn) {
			if c.p.Order.Before(call, instr) && !c.ended(ends, call, instr) {
				c.look(instr)
			}
		}
	}
}

// ends returns where a transaction is committed or rolled back, but for what is deferred.
func (c *checker) ends(fn *ssa.Function, root flow.Origin) (found []ssa.Instruction) {
	for call := range calls.In(fn) {
		name := calls.Name(call)
		if _, deferred := call.(*ssa.Defer); deferred || gormapi.MethodRole(name) != gormapi.Ends || name.Name == "RollbackTo" {
			continue
		}
		if all(c.p.Chains.Of(calls.Receiver(call)), func(o flow.Origin) bool { return o == root }) {
			found = append(found, call)
		}
	}
	return found
}

// ended reports whether a transaction can be over that held the lock.
func (c *checker) ended(ends []ssa.Instruction, lock, instr ssa.Instruction) bool {
	for _, end := range ends {
		if end == instr || calls.ReachableFrom(lock, end) && calls.ReachableFrom(end, instr) {
			return true
		}
	}
	return false
}

var words = map[facts.EffectKind]string{
	facts.Network: "waits for an answer over the network", facts.Sleep: "sleeps", facts.Wait: "waits for a channel",
	facts.OtherProgram: "waits for another program",
}

func (c *checker) look(instr ssa.Instruction) {
	for _, e := range c.effects.At(instr) {
		word, ok := words[e.Kind]
		if !ok || c.reported[instr.Pos()] {
			continue
		}
		c.reported[instr.Pos()] = true
		c.p.Report(c.pass, instr.Pos(), "%s %s while the transaction holds a lock, and so does everybody who wants it: do it before, or after the commit",
			e.What, word)
	}
}
