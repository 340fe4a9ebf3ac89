// Package ignored finds errors of locks and of guarded writes that nobody looks at.
package ignored

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/code"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Analyzer is the finding.
var Analyzer = code.New("ignored", "find errors of locks and of guarded writes that nobody looks at\n\n"+
	"A lock that was not got, a write that was refused as stale or fenced, a claim that failed: an error says so, and\n"+
	"only that. A deferred Release may drop its error, as may one that is assigned to the blank identifier.", run)

func run(pass *analysis.Pass, p *code.Package) {
	for _, fn := range p.Funcs {
		deferred := deferredLiteral(fn)
		for call := range calls.In(fn) {
			if index, releases, ok := gormapi.MustLook(calls.Name(call)); ok {
				if dropped := releases && (deferred || meant(p, call)); !dropped && unread(call, index) {
					p.Report(pass, call.Pos(), "nobody looks at the error of %s%s", calls.Name(call).Show(), consequence(calls.Name(call), releases))
				}
				continue
			}
			statement(pass, p, call)
		}
	}
}

func consequence(f gormapi.Func, releases bool) string {
	switch {
	case f.Pkg == gormapi.Work && f.Name == "Run":
		return ": it says whether a handler was cut off"
	case f.Pkg == gormapi.Work && (f.Name == "Later" || f.Name == "Dead"):
		return ": a handler that does not return it has done its job"
	case releases:
		return ": it says whether the lock was lost before"
	}
	return ", which alone says that it was not done"
}

// statement looks at a statement of GORM's that carries a lock or writes a tagged model.
func statement(pass *analysis.Pass, p *code.Package, call ssa.CallInstruction) {
	if known := p.Known.Of(call); known != nil && len(known.Results) == 1 && known.Results[0].Look != "" && dropsResult(call) {
		p.Report(pass, call.Pos(), "nobody looks at the Error of %s, which %s returns: a lock or a write may be refused, and that alone says so",
			known.Results[0].Look, calls.Name(call).Name)
		return
	}
	s, ok := p.Statements.Of(call)
	if !ok || !s.Role.Runs() || s.IsDry() {
		return
	}
	locks, model := p.Carries.OurLocks(s), s.Written()
	if !locks && !model.Tagged() || !dropsError(call) {
		return
	}
	if locks {
		p.Report(pass, call.Pos(), "nobody looks at the Error of %s, which alone says whether the lock was got", s.Name.Name)
		return
	}
	p.Report(pass, call.Pos(), "nobody looks at the Error of %s: a write of %s may be refused, and that alone says so", s.Name.Name, model.Name)
}

// dropsError reports whether the error of a statement goes nowhere.
func dropsError(call ssa.CallInstruction) bool {
	results := call.Common().Signature().Results()
	if results.Len() == 1 && gormapi.IsDB(results.At(0).Type()) {
		return dropsResult(call)
	}
	last := results.Len() - 1
	return last >= 0 && types.Identical(results.At(last).Type(), types.Universe.Lookup("error").Type()) && unread(call, last)
}

// dropsResult reports whether nobody reads Error of the db that a statement returns.
func dropsResult(call ssa.CallInstruction) bool {
	result := call.Value()
	if result == nil {
		return true // go, defer
	}
	for _, use := range *result.Referrers() {
		at, ok := use.(*ssa.FieldAddr)
		if !ok || values.Field(at) != "RowsAffected" && values.Field(at) != "Error" || values.Field(at) == "Error" && read(at) {
			return false // Statement is asked for in dry runs
		}
	}
	if recv, ok := calls.Receiver(call).(*ssa.Call); ok { // a chain keeps the error of what is run on it
		for _, use := range *recv.Referrers() {
			if at, ok := use.(*ssa.FieldAddr); ok && values.Field(at) == "Error" {
				return false
			}
		}
	}
	return true
}

func read(at *ssa.FieldAddr) bool {
	for _, use := range *at.Referrers() {
		if load, ok := use.(*ssa.UnOp); !ok || len(*load.Referrers()) > 0 {
			return true
		}
	}
	return false
}

// unread reports whether nobody uses one of the results of a call.
func unread(call ssa.CallInstruction, index int) bool {
	result := call.Value()
	switch {
	case result == nil:
		return true
	case call.Common().Signature().Results().Len() == 1:
		return len(*result.Referrers()) == 0
	}
	for _, use := range *result.Referrers() {
		extract, ok := use.(*ssa.Extract)
		if !ok || extract.Index == index && len(*extract.Referrers()) > 0 {
			return false
		}
	}
	return true
}

// meant reports whether a release is deferred, or its error is assigned to the blank identifier.
func meant(p *code.Package, call ssa.CallInstruction) bool {
	if _, ok := call.(*ssa.Defer); ok {
		return true
	}
	for _, n := range p.Source.PathTo(call.Pos()) {
		switch n.(type) {
		case *ast.AssignStmt:
			return true // to nothing that is read
		case *ast.BlockStmt, *ast.ExprStmt:
			return false
		}
	}
	return false
}

// deferredLiteral reports whether a function literal is only deferred.
func deferredLiteral(fn *ssa.Function) bool {
	if fn.Parent() == nil {
		return false
	}
	for call := range calls.In(fn.Parent()) {
		if _, ok := call.(*ssa.Defer); ok && call.Common().StaticCallee() == fn {
			return true
		}
	}
	return false
}
