// Package reads finds where the structs of a package are read from the database, and which are saved as a whole.
package reads

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/statements"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Reads finds where the structs of a package are read from the database.
type Reads struct {
	pkg        *types.Package
	variables  *flow.Variables
	chains     *flow.Chains
	known      *facts.Known
	statements *statements.Statements
}

// Read is a place where a struct is filled from its row, or may be.
type Read struct {
	At        ssa.CallInstruction
	Statement statements.Statement
	Known     bool     // it is a read of GORM's or gormlock's; else a function that was given the struct
	Columns   []string // those that Select names; nil: all
	Some      bool     // Select or Omit leaves some out
}

// New returns the reads of a package.
func New(pkg *types.Package, variables *flow.Variables, chains *flow.Chains, known *facts.Known, statements *statements.Statements) *Reads {
	return &Reads{pkg, variables, chains, known, statements}
}

// Of returns where the struct that a pointer points to is filled, in the function that has it and in its literals.
func (rs *Reads) Of(struc flow.Origin, in *ssa.Function) (reads []Read) {
	for _, fn := range calls.Family(in) {
		for call := range calls.In(fn) {
			if r, ok := rs.at(call, struc); ok {
				reads = append(reads, r)
			}
		}
	}
	return reads
}

func (rs *Reads) at(call ssa.CallInstruction, struc flow.Origin) (Read, bool) {
	s, isStatement := rs.statements.Of(call)
	if struc.Kind == flow.Local && rs.returns(call, struc) {
		known := isStatement
		if summary := rs.known.Of(call); summary != nil {
			for _, result := range summary.Results {
				known = known || result.Read
			}
		}
		return columns(Read{At: call, Statement: s, Known: known}), known
	}
	given := false
	for _, arg := range call.Common().Args {
		for _, part := range values.Parts(arg) {
			o, ok := rs.chains.Origin(values.Bare(part))
			given = given || ok && o == struc
		}
	}
	switch ours, isOurs := gormapi.CallOf(s.Name); {
	case !given:
		return Read{}, false
	case isStatement && isOurs:
		return Read{At: call, Statement: s, Known: ours.Reads}, ours.Reads
	case isStatement && s.Role == gormapi.Reads && s.Name.Name != "Count":
		return columns(Read{At: call, Statement: s, Known: true}), true
	case isStatement, calls.Name(call).Pkg == gormapi.Gorm, rs.saves(call, struc), !rs.mayRead(call, struc):
		return Read{}, false
	}
	return Read{At: call}, true
}

// mayRead reports whether a function that is given the struct may read it from the database: it runs statements, or
// nothing is known of it and it is given something that may lead to a db.
func (rs *Reads) mayRead(call ssa.CallInstruction, struc flow.Origin) bool {
	if fn := calls.Callee(call); fn == nil || fn.Pkg() == rs.pkg {
		known := rs.known.Of(call)
		return fn == nil && !calls.Builtin(call) || known != nil && len(known.Runs) > 0
	}
	for _, arg := range call.Common().Args {
		if o, ok := rs.chains.Origin(values.Bare(arg)); ok && o == struc {
			continue
		}
		if _, basic := values.Bare(arg).Type().Underlying().(*types.Basic); !basic {
			return true
		}
	}
	return call.Common().IsInvoke()
}

// returns reports whether the struct is what a call returns: its pointer, or a copy in a variable.
func (rs *Reads) returns(call ssa.CallInstruction, struc flow.Origin) bool {
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
	for _, v := range rs.variables.StoresTo(alloc) {
		if extract, isExtract := v.(*ssa.Extract); isExtract && extract.Tuple == ssa.Value(value) || v == ssa.Value(value) {
			return true
		}
	}
	return false
}

// saves reports whether a function that is called writes the struct as a whole.
func (rs *Reads) saves(call ssa.CallInstruction, struc flow.Origin) bool {
	return slices.ContainsFunc(rs.Saved(call), func(v ssa.Value) bool {
		o, ok := rs.chains.Origin(v)
		return ok && o == struc
	})
}

// Saved returns the structs that a called function writes as a whole.
func (rs *Reads) Saved(call ssa.CallInstruction) (all []ssa.Value) {
	if known := rs.known.Of(call); known != nil {
		for _, i := range known.Saves {
			if args := calls.Params(call); i < len(args) {
				all = append(all, args[i])
			}
		}
	}
	return all
}

// columns reads Select and Omit of the statement.
func columns(r Read) Read {
	for link := range r.Statement.Links() {
		switch calls.Name(link).Name {
		case "Select":
			names, ok := namesOf(calls.Args(link))
			if r.Some = ok; ok {
				r.Columns = names
			}
		case "Omit":
			names, ok := namesOf(calls.Args(link))
			r.Some = r.Some || ok && len(names) > 0
		}
	}
	return r
}

// namesOf returns the columns that Select or Omit is given, if the compiler knows them and they are plain names.
func namesOf(args []ssa.Value) (names []string, ok bool) {
	for _, arg := range args {
		parts := values.Parts(values.Bare(arg))
		if values.Nil(arg) {
			continue
		}
		for _, part := range parts {
			text, known := values.String(part)
			if !known {
				return nil, false
			}
			for _, name := range strings.Split(text, ",") {
				name = strings.TrimSpace(name)
				if name == "" || strings.ContainsAny(name, "*( ?") {
					return nil, false
				}
				names = append(names, strings.Trim(name[strings.LastIndexByte(name, '.')+1:], `"`))
			}
		}
	}
	return names, len(names) > 0
}
