package retried

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// outside returns the variable that an address, a map or a channel is, if it lives longer than one attempt.
func (c *checker) outside(v ssa.Value) (flow.Variable, bool) {
	at, ok := c.p.Variables.At(v)
	if !ok {
		return at, false
	}
	switch o := at.Origin; o.Kind {
	case flow.Global:
		return at, true
	case flow.Param:
		if o.Fn == c.h.Given.Fn {
			return at, c.h.Given.IsReceiver(o.Index)
		}
		return at, !slices.Contains(c.parts, o.Fn)
	case flow.Local:
		if made, ok := o.Value.(ssa.Instruction); ok {
			return at, !slices.Contains(c.parts, made.Parent())
		}
	default: // no variable
	}
	return at, false
}

var attempts = regexp.MustCompile(`(?i)attempt|tries|try|runs?$|retr|calls|^[in]$`)

// countsAttempts holds for a counter whose name says that it counts the attempts.
func countsAttempts(v flow.Variable, value ssa.Value) bool {
	sum, ok := value.(*ssa.BinOp)
	if !ok || !attempts.MatchString(v.Name[strings.LastIndexByte(v.Name, '.')+1:]) {
		return false
	}
	one, ok := sum.Y.(*ssa.Const)
	return ok && one.Value != nil && one.Value.String() == "1"
}

// reset reports whether the variable starts anew with each attempt: it is assigned inside before, read from the database,
// given to somebody who may do either, or OnRetry does.
func (c *checker) reset(at ssa.Instruction, v flow.Variable) bool {
	for _, part := range c.parts {
		for instr := range calls.Instructions(part) {
			if instr != at && c.p.Order.Before(instr, at) && c.startsAnew(instr, v) {
				return true
			}
		}
	}
	for _, option := range c.h.Options {
		made, ok := values.Bare(option).(*ssa.Call)
		if !ok || calls.Name(made).Name != "OnRetry" || len(made.Call.Args) == 0 {
			continue
		}
		if told := c.p.Chains.Literal(made.Call.Args[0]); told != nil {
			for instr := range calls.Instructions(told) {
				if c.startsAnew(instr, v) {
					return true
				}
			}
		}
	}
	return false
}

func (c *checker) startsAnew(instr ssa.Instruction, v flow.Variable) bool {
	covers := func(address ssa.Value) bool {
		is, ok := c.p.Variables.At(address)
		return ok && sameVariable(is.Origin, v.Origin) && (is.Origin.Path == "" || strings.HasPrefix(v.Origin.Path, is.Origin.Path))
	}
	switch instr := instr.(type) {
	case *ssa.Store:
		return covers(instr.Addr) && !c.p.Variables.GrowsFrom(instr.Val, instr.Addr)
	case ssa.CallInstruction:
		if builtin, ok := instr.Common().Value.(*ssa.Builtin); ok {
			return builtin.Name() == "clear" && covers(instr.Common().Args[0])
		}
		name := calls.Name(instr)
		if name.Name == "Reset" || name.Name == "Truncate" {
			return covers(calls.Receiver(instr))
		}
		if gormapi.MethodRole(name) == gormapi.Writes {
			return false
		}
		for _, arg := range instr.Common().Args {
			if covers(values.Bare(arg)) && pointer(values.Bare(arg)) {
				return name.Name[:min(5, len(name.Name))] != "Write"
			}
		}
	}
	return false
}

// pointer holds for what lets a function change the variable.
func pointer(v ssa.Value) bool {
	switch v.(type) {
	case *ssa.Alloc, *ssa.FieldAddr, *ssa.FreeVar, *ssa.Global, *ssa.Parameter:
		return true
	case *ssa.UnOp:
		return strings.HasPrefix(v.Type().Underlying().String(), "*")
	}
	return false
}

func sameVariable(a, b flow.Origin) bool {
	a.Path, b.Path = "", ""
	return a == b
}
