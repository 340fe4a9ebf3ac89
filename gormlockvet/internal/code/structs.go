package code

import (
	"go/types"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/statements"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Read is a place where a struct is filled from its row, or may be.
type Read struct {
	At        ssa.CallInstruction
	Statement statements.Statement
	Known     bool     // it is a read of GORM's or gormlock's; else a function that was given the struct
	Columns   []string // those that Select names; nil: all
	Some      bool     // Select or Omit leaves some out
}

// ReadsOf returns where the struct that a pointer points to is filled, in the function that has it and in its literals.
func (p *Package) ReadsOf(struc flow.Origin, in *ssa.Function) (reads []Read) {
	for _, fn := range calls.Family(in) {
		for call := range calls.In(fn) {
			if r, ok := p.readAt(call, struc); ok {
				reads = append(reads, r)
			}
		}
	}
	return reads
}

func (p *Package) readAt(call ssa.CallInstruction, struc flow.Origin) (Read, bool) {
	s, isStatement := p.Statements.Of(call)
	if struc.Kind == flow.Local && p.returns(call, struc) {
		known := isStatement
		if summary := p.Known.Of(call); summary != nil {
			for _, result := range summary.Results {
				known = known || result.Read
			}
		}
		return p.columns(Read{At: call, Statement: s, Known: known}), known
	}
	given := false
	for _, arg := range call.Common().Args {
		for _, part := range values.Parts(arg) {
			o, ok := p.Chains.Origin(values.Bare(part))
			given = given || ok && o == struc
		}
	}
	switch ours, isOurs := gormapi.CallOf(s.Name); {
	case !given:
		return Read{}, false
	case isStatement && isOurs:
		return Read{At: call, Statement: s, Known: ours.Reads}, ours.Reads
	case isStatement && s.Role == gormapi.Reads && s.Name.Name != "Count":
		return p.columns(Read{At: call, Statement: s, Known: true}), true
	case isStatement, calls.Name(call).Pkg == gormapi.Gorm, p.saves(call, struc), !p.mayRead(call, struc):
		return Read{}, false
	}
	return Read{At: call}, true
}

// mayRead reports whether a function that is given the struct may read it from the database: it runs statements, or
// nothing is known of it and it is given something that may lead to a db.
func (p *Package) mayRead(call ssa.CallInstruction, struc flow.Origin) bool {
	if fn := calls.Callee(call); fn == nil || fn.Pkg() == p.Pass.Pkg {
		known := p.Known.Of(call)
		return fn == nil && !calls.Builtin(call) || known != nil && len(known.Runs) > 0
	}
	for _, arg := range call.Common().Args {
		if o, ok := p.Chains.Origin(values.Bare(arg)); ok && o == struc {
			continue
		}
		if _, basic := values.Bare(arg).Type().Underlying().(*types.Basic); !basic {
			return true
		}
	}
	return call.Common().IsInvoke()
}

// returns reports whether the struct is what a call returns: its pointer, or a copy in a variable.
func (p *Package) returns(call ssa.CallInstruction, struc flow.Origin) bool {
	value, ok := call.(*ssa.Call)
	if !ok {
		return false
	}
	if struc.Value == ssa.Value(value) {
		return true
	}
	alloc, ok := struc.Value.(*ssa.Alloc)
	if !ok || struc.Path != "" {
		return false
	}
	for _, v := range p.Variables.StoresTo(alloc) {
		if extract, isExtract := v.(*ssa.Extract); isExtract && extract.Tuple == ssa.Value(value) || v == ssa.Value(value) {
			return true
		}
	}
	return false
}

// saves reports whether a function that is called writes the struct as a whole.
func (p *Package) saves(call ssa.CallInstruction, struc flow.Origin) bool {
	known := p.Known.Of(call)
	if known == nil {
		return false
	}
	for _, i := range known.Saves {
		if args := calls.Params(call); i < len(args) {
			if o, ok := p.Chains.Origin(args[i]); ok && o == struc {
				return true
			}
		}
	}
	return false
}

// SavedBy returns the structs that a called function writes as a whole.
func (p *Package) SavedBy(call ssa.CallInstruction) (all []ssa.Value) {
	if known := p.Known.Of(call); known != nil {
		for _, i := range known.Saves {
			if args := calls.Params(call); i < len(args) {
				all = append(all, args[i])
			}
		}
	}
	return all
}

// columns reads Select and Omit of the statement.
func (p *Package) columns(r Read) Read {
	for link := range r.Statement.Links() {
		switch calls.Name(link).Name {
		case "Select":
			names, ok := values.Columns(calls.Args(link))
			if r.Some = ok; ok {
				r.Columns = names
			}
		case "Omit":
			names, ok := values.Columns(calls.Args(link))
			r.Some = r.Some || ok && len(names) > 0
		}
	}
	return r
}
