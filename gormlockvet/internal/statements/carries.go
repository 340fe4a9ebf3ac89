package statements

import (
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Carries finds what is put on a db before a statement runs on it: locks, clauses, SQL text.
type Carries struct {
	chains     *flow.Chains
	variables  *flow.Variables
	known      *facts.Known
	statements *Statements
	scoping    map[*ssa.Function]bool // scopes that are being read
}

// NewCarries returns what the dbs of a package carry.
func NewCarries(variables *flow.Variables, chains *flow.Chains, known *facts.Known, statements *Statements) *Carries {
	return &Carries{chains: chains, variables: variables, known: known, statements: statements, scoping: map[*ssa.Function]bool{}}
}

// Of returns what the chain carries for the statement at its end.
func (cs *Carries) Of(c flow.Chain) gormapi.Carry {
	carry := c.Carry
	for _, link := range c.Links {
		carry = cs.after(carry, link)
	}
	return carry
}

// after returns what a db carries after one more call.
func (cs *Carries) after(carry gormapi.Carry, link *ssa.Call) gormapi.Carry {
	name, args := calls.Name(link), calls.Args(link)
	switch {
	case name == gormapi.Func{Pkg: gormapi.Gorm, Name: "G"}:
		return cs.OfAll(args[1])
	case name.Name == "Session" && len(args) == 1 && NewDB(args[0]):
		return 0
	case name.Name == "Scopes" || name.Name == "Clauses":
		return carry | cs.OfAll(args[0])
	case name.Name == "Raw":
		return carry | gormapi.Text
	}
	return carry
}

// OfAll returns what the scopes or clauses of a variadic argument put on a db.
func (cs *Carries) OfAll(arguments ssa.Value) gormapi.Carry {
	elements, ok := values.Variadic(arguments)
	if !ok {
		return 0
	}
	var carry gormapi.Carry
	for _, element := range elements {
		carry |= cs.OfPart(element)
	}
	return carry
}

// OfPart returns what one scope or clause puts on a db.
func (cs *Carries) OfPart(v ssa.Value) gormapi.Carry {
	v = values.Bare(v)
	if carry := carryOfType(v.Type()); carry != 0 {
		return carry | waits(v)
	}
	if assigned, ok := cs.variables.Assigned(v); ok {
		v = values.Bare(assigned)
	}
	made := cs.chains.Made(v)
	if made == nil {
		return 0
	}
	switch v := values.Bare(made).(type) {
	case *ssa.Call:
		if carry := gormapi.ScopeCarry(calls.Name(v)); carry != 0 {
			return carry | waits(v)
		}
		if known := cs.known.Of(v); known != nil && len(known.Results) > 0 {
			return known.Results[0].Puts
		}
	case *ssa.MakeClosure:
		if fn, ok := v.Fn.(*ssa.Function); ok {
			if len(v.Bindings) == 1 && fn.Name() == "ModifyStatement$bound" {
				return carryOfType(v.Bindings[0].Type()) | waits(v.Bindings[0])
			}
			return cs.ofScope(calls.Body(fn))
		}
	case *ssa.Function:
		return cs.ofScope(calls.Body(v))
	}
	return carryOfType(made.Type())
}

func carryOfType(t types.Type) gormapi.Carry {
	switch named := gormapi.NamedOf(t); {
	case named == nil:
		return 0
	case gormapi.IsOurs(named):
		return gormapi.ClauseCarry(named.Obj().Name())
	case gormapi.Is(named, gormapi.Clause, "Locking"):
		return gormapi.GormLocking
	}
	return 0
}

// waits reports Waits of a row lock that is made with Try or Timeout.
func waits(v ssa.Value) gormapi.Carry {
	call, ok := v.(*ssa.Call)
	if !ok || len(call.Call.Args) == 0 {
		return 0
	}
	options, _ := values.Variadic(call.Call.Args[len(call.Call.Args)-1])
	for _, option := range options {
		if made, ok := values.Bare(option).(*ssa.Call); ok {
			if name := calls.Name(made); name.Pkg == gormapi.Gormlock && (name.Name == "Try" || name.Name == "Timeout") {
				return gormapi.Waits
			}
		}
	}
	return 0
}

// ofScope returns what a function of the program puts on the db it is given and returns.
func (cs *Carries) ofScope(fn *ssa.Function) gormapi.Carry {
	if object := calls.Declared(fn); object != nil {
		if known := cs.known.OfFunc(object); known != nil && len(known.Results) == 1 && known.Results[0].Known {
			return known.Results[0].Carry
		}
		return 0
	}
	if cs.scoping[fn] {
		return 0 // a scope that puts itself on a db
	}
	cs.scoping[fn] = true
	defer delete(cs.scoping, fn)
	if result, ok := facts.Agreed(fn, 0, func(v ssa.Value) facts.Result { return cs.Returned(fn, v) }); ok && result.Known {
		return result.Carry
	}
	return 0
}

// Locks reports whether a statement takes a lock that its transaction then holds.
func (cs *Carries) Locks(s Statement) bool {
	if ours, ok := gormapi.CallOf(s.Name); ok {
		return ours.Locks
	}
	for _, c := range s.On {
		if cs.Of(c).Locks() {
			return true
		}
	}
	return false
}

// OurLocks reports whether the statement's db carries a lock of gormlock on each way.
func (cs *Carries) OurLocks(s Statement) bool {
	for _, c := range s.On {
		if !cs.Of(c).OurLocks() {
			return false
		}
	}
	return len(s.On) > 0
}

// look returns the name of a statement whose Error has to be looked at.
func (cs *Carries) look(call *ssa.Call) string {
	if known := cs.known.Of(call); known != nil && len(known.Results) == 1 {
		return known.Results[0].Look
	}
	s, ok := cs.statements.Of(call)
	if !ok || s.Ours() || !s.Role.Runs() {
		return ""
	}
	if s.Written().Tagged() {
		return s.Name.Name
	}
	if !cs.OurLocks(s) {
		return ""
	}
	return s.Name.Name
}

// Returned returns what is known of a db that fn returns, as far as fn has it from its parameters or from a variable.
func (cs *Carries) Returned(fn *ssa.Function, v ssa.Value) (r facts.Result) {
	if call, ok := v.(*ssa.Call); ok && gormapi.IsDB(v.Type()) {
		r.Look = cs.look(call)
	}
	chains := cs.chains.Of(v)
	if r.Place, r.Known = flow.PlaceOf(fn, chains); r.Known {
		for _, c := range chains {
			r.Carry |= cs.Of(c)
		}
	}
	return r
}
