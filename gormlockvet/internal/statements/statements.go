package statements

import (
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

// Statements finds the statements among the calls of a package.
type Statements struct{ chains *flow.Chains }

// New returns the statements of a package.
func New(chains *flow.Chains) *Statements { return &Statements{chains} }

// Of returns what a call runs.
func (ss *Statements) Of(call ssa.CallInstruction) (Statement, bool) {
	name := calls.Name(call)
	if name.Pkg != gormapi.Gorm && name.Pkg != gormapi.Gormlock && name.Pkg != gormapi.Work {
		return Statement{}, false
	}
	s := Statement{Call: call, Name: name}
	if ours, ok := gormapi.CallOf(name); ok {
		if args := calls.Args(call); len(args) > 0 && gormapi.IsDB(args[0].Type()) {
			s.Role, s.On = gormapi.Reads, ss.chains.Of(args[0])
			if ours.Writes {
				s.Role = gormapi.Writes
			}
			return s, true
		}
		return s, false
	}
	for _, role := range []gormapi.Role{gormapi.MethodRole(name), gormapi.GenericRole(name), gormapi.AssociationRole(name)} {
		if role.Runs() || role == gormapi.Begins && name.Name != "Connection" {
			s.Role, s.On = role, ss.chains.Of(calls.Receiver(call))
			return s, true
		}
	}
	return s, false
}
