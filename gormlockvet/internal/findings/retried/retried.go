// Package retried finds what a function does that is done again with each attempt.
package retried

import (
	"go/token"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/code"
	"github.com/gormlock/gormlock/gormlockvet/internal/effects"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/handovers"
)

// Analyzer is the finding.
var Analyzer = code.New("retried", "find what a retried transaction does twice\n\n"+
	"The database takes back what an attempt wrote that failed. It does not take back what the function appended, counted\n"+
	"or sent: with Attempts that happens once for each run.", run)

func run(pass *analysis.Pass, p *code.Package) {
	outward := effects.New(pass.Pkg, p.Order, p.Known)
	for _, h := range p.Handovers.All() {
		if h.Attempts && h.Transacts() {
			c := checker{pass: pass, p: p, outward: outward, h: h, parts: p.Order.RunBy(h.Given.Fn), reported: map[token.Pos]bool{}}
			c.check()
		}
	}
}

type checker struct {
	pass     *analysis.Pass
	p        *code.Package
	outward  *effects.Effects
	h        *handovers.Handover
	parts    []*ssa.Function
	reported map[token.Pos]bool
}

func (c *checker) check() {
	for _, part := range c.parts {
		for instr := range calls.Instructions(part) {
			switch instr := instr.(type) {
			case *ssa.Store:
				c.store(instr)
			case *ssa.MapUpdate:
				if v, ok := c.outside(instr.Map); ok && !c.reset(instr, v) {
					c.report(instr.Pos(), "%s keeps what a failed attempt put into it: make it inside, or clear it first", v)
				}
			case *ssa.Send:
				if v, ok := c.outside(instr.Chan); ok {
					c.report(instr.Pos(), "%s gets a value from each attempt, even from those that are rolled back: send after the transaction", v)
				}
			case ssa.CallInstruction:
				c.call(instr)
			}
			c.goesOut(instr)
		}
	}
}

func (c *checker) report(pos token.Pos, format string, args ...any) {
	if !c.reported[pos] {
		c.reported[pos] = true
		c.p.Report(c.pass, pos, format, args...)
	}
}

// goesOut looks at what goes out of the program.
func (c *checker) goesOut(instr ssa.Instruction) {
	for _, e := range c.outward.At(instr) {
		switch e.Kind {
		case facts.Network, facts.Answer, facts.File:
			c.report(instr.Pos(), "%s is done again with each attempt, and a rollback does not take it back: do it after the transaction", e.What)
		case facts.Sleep, facts.Wait, facts.OtherProgram:
		}
	}
}

// store looks at an assignment: whether the new value is made of the old one.
func (c *checker) store(store *ssa.Store) {
	v, ok := c.outside(store.Addr)
	if !ok || !c.p.Variables.GrowsFrom(store.Val, store.Addr) || countsAttempts(v, store.Val) || c.reset(store, v) {
		return
	}
	c.report(place(store), "%s grows with each attempt, even with those that are rolled back: start it anew inside", v)
}

func place(store *ssa.Store) token.Pos {
	if store.Pos().IsValid() {
		return store.Pos()
	}
	return store.Val.Pos()
}

// call looks at what collects: a strings.Builder, a bytes.Buffer, a channel that is closed.
func (c *checker) call(call ssa.CallInstruction) {
	common := call.Common()
	if builtin, ok := common.Value.(*ssa.Builtin); ok {
		switch builtin.Name() {
		case "close":
			if v, ok := c.outside(common.Args[0]); ok {
				c.report(call.Pos(), "%s is closed by each attempt, and the second panics: close it after the transaction", v)
			}
		case "delete":
			if v, ok := c.outside(common.Args[0]); ok && !c.reset(call, v) {
				c.report(call.Pos(), "%s has lost what a failed attempt took out of it: change it after the transaction", v)
			}
		}
		return
	}
	name := calls.Name(call)
	if (name.Pkg == "strings" && name.Recv == "Builder" || name.Pkg == "bytes" && name.Recv == "Buffer") && len(name.Name) > 5 && name.Name[:5] == "Write" {
		if v, ok := c.outside(calls.Receiver(call)); ok && !c.reset(call, v) {
			c.report(call.Pos(), "%s grows with each attempt, even with those that are rolled back: start it anew inside", v)
		}
	}
	c.grown(call)
}

// grown looks at what a function that is called collects.
func (c *checker) grown(call ssa.CallInstruction) {
	known := c.p.Known.Of(call)
	if known == nil {
		return
	}
	for _, at := range known.Grows {
		args := calls.Params(call)
		if at.Param >= len(args) {
			continue
		}
		v, ok := c.outside(args[at.Param])
		if v = v.Field(at.Path); ok && !c.reset(call, v) {
			c.report(call.Pos(), "%s grows with each attempt, even with those that are rolled back, for %s appends to it: start it anew inside",
				v, calls.Name(call).Name)
		}
	}
}
