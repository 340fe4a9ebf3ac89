package code

import (
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Statement is a call that sends something to the database, or begins a transaction there.
type Statement struct {
	Call ssa.CallInstruction
	Name gormapi.Func
	Role gormapi.Role
	On   []flow.Chain // the db it runs on, with what was built on it
}

// Ours reports whether the statement is a function of gormlock, which is given its db as an argument.
func (s Statement) Ours() bool { return s.Name.Pkg != gormapi.Gorm }

// StatementOf returns what a call runs.
func (p *Package) StatementOf(call ssa.CallInstruction) (Statement, bool) {
	name := calls.Name(call)
	if name.Pkg != gormapi.Gorm && name.Pkg != gormapi.Gormlock && name.Pkg != gormapi.Work {
		return Statement{}, false
	}
	s := Statement{Call: call, Name: name}
	if ours, ok := gormapi.CallOf(name); ok {
		if args := calls.Args(call); len(args) > 0 && gormapi.IsDB(args[0].Type()) {
			s.Role, s.On = gormapi.Reads, p.Chains.Of(args[0])
			if ours.Writes {
				s.Role = gormapi.Writes
			}
			return s, true
		}
		return s, false
	}
	for _, role := range []gormapi.Role{gormapi.MethodRole(name), gormapi.GenericRole(name), gormapi.AssociationRole(name)} {
		if role.Runs() || role == gormapi.Begins && name.Name != "Connection" {
			s.Role, s.On = role, p.Chains.Of(calls.Receiver(call))
			return s, true
		}
	}
	return s, false
}

// CarryOf returns what the chain carries for the statement at its end.
func (p *Package) CarryOf(c flow.Chain) gormapi.Carry {
	carry := c.Carry
	for _, link := range c.Links {
		carry = p.after(carry, link)
	}
	return carry
}

// after returns what a db carries after one more call.
func (p *Package) after(carry gormapi.Carry, link *ssa.Call) gormapi.Carry {
	name, args := calls.Name(link), calls.Args(link)
	switch {
	case name == gormapi.Func{Pkg: gormapi.Gorm, Name: "G"}:
		return p.CarryOfAll(args[1])
	case name.Name == "Session" && len(args) == 1 && NewDB(args[0]):
		return 0
	case name.Name == "Scopes" || name.Name == "Clauses":
		return carry | p.CarryOfAll(args[0])
	case name.Name == "Raw":
		return carry | gormapi.Text
	}
	return carry
}

// NewDB reports whether the configuration of Session is a literal that asks for a new statement.
func NewDB(config ssa.Value) bool {
	alloc, ok := config.(*ssa.Alloc)
	if !ok {
		return false
	}
	for _, use := range *alloc.Referrers() {
		at, ok := use.(*ssa.FieldAddr)
		if !ok || values.Field(at) != "NewDB" {
			continue
		}
		for _, use := range *at.Referrers() {
			if store, ok := use.(*ssa.Store); ok && values.True(store.Val) {
				return true
			}
		}
	}
	return false
}

// CarryOfAll returns what the scopes or clauses of a variadic argument put on a db.
func (p *Package) CarryOfAll(arguments ssa.Value) gormapi.Carry {
	elements, ok := values.Variadic(arguments)
	if !ok {
		return 0
	}
	var carry gormapi.Carry
	for _, element := range elements {
		carry |= p.CarryOfPart(element)
	}
	return carry
}

// CarryOfPart returns what one scope or clause puts on a db.
func (p *Package) CarryOfPart(v ssa.Value) gormapi.Carry {
	v = values.Bare(v)
	if carry := carryOfType(v.Type()); carry != 0 {
		return carry | p.waits(v)
	}
	if assigned, ok := p.Variables.Assigned(v); ok {
		v = values.Bare(assigned)
	}
	chains := p.Chains.Of(v)
	if len(chains) != 1 || chains[0].Root.Kind != flow.Local || chains[0].Root.Path != "" {
		return 0
	}
	switch v := values.Bare(chains[0].Root.Value).(type) {
	case *ssa.Call:
		if carry := gormapi.ScopeCarry(calls.Name(v)); carry != 0 {
			return carry | p.waits(v)
		}
		if known := p.Known.Of(v); known != nil && len(known.Results) > 0 {
			return known.Results[0].Puts
		}
	case *ssa.MakeClosure:
		if fn, ok := v.Fn.(*ssa.Function); ok {
			if len(v.Bindings) == 1 && fn.Name() == "ModifyStatement$bound" {
				return carryOfType(v.Bindings[0].Type()) | p.waits(v.Bindings[0])
			}
			return p.carryOfScope(calls.Body(fn))
		}
	case *ssa.Function:
		return p.carryOfScope(calls.Body(v))
	}
	return carryOfType(chains[0].Root.Value.Type())
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
func (p *Package) waits(v ssa.Value) gormapi.Carry {
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

// carryOfScope returns what a function of the program puts on the db it is given and returns.
func (p *Package) carryOfScope(fn *ssa.Function) gormapi.Carry {
	if object := calls.Declared(fn); object != nil {
		if known := p.Known.OfFunc(object); known != nil && len(known.Results) == 1 && known.Results[0].Known {
			return known.Results[0].Carry
		}
		return 0
	}
	if p.scoping[fn] {
		return 0 // a scope that puts itself on a db
	}
	p.scoping[fn] = true
	defer delete(p.scoping, fn)
	if result, ok := p.resultOf(fn, 0); ok && result.Known {
		return result.Carry
	}
	return 0
}
