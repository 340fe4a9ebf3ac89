// Package outer finds the db or ctx from outside in a function that was given its own.
package outer

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/code"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/handovers"
)

// Analyzer is the finding.
var Analyzer = code.New("outer", "find the outer db or ctx in a function that was given its own\n\n"+
	"Inside of Transaction and Once a statement on the outer db runs on another connection: outside of the transaction and\n"+
	"its lock, and after a rollback it stays. Inside of Do, Lead, Every and a handler of work the outer ctx does not end\n"+
	"when the lock is lost, and carries no fencing token.", run)

func run(pass *analysis.Pass, p *code.Package) {
	c := checker{pass: pass, p: p, reported: map[token.Pos]bool{}}
	for _, h := range p.Handovers.All() {
		if h.Transacts() {
			c.transaction(h)
		}
		if h.Given.Ctx != nil && (h.Ctx != nil || h.Kind == gormapi.WorkKind) {
			c.context(h)
		}
	}
}

type checker struct {
	pass     *analysis.Pass
	p        *code.Package
	reported map[token.Pos]bool
}

// transaction looks for statements on the db that the transaction was begun on.
func (c *checker) transaction(h *handovers.Handover) {
	base, ok := c.base(h)
	if !ok {
		return
	}
	for _, part := range c.p.Order.RunBy(h.Given.Fn) {
		for call := range calls.In(part) {
			if s, ok := c.p.Statements.Of(call); ok {
				if c.outside(h, base, s.On) {
					c.report(h, call, "%s runs on the db from outside of the transaction, on another connection: use the one that the function was given", s.Name.Name)
				}
				continue
			}
			known := c.p.Known.Of(call)
			if known == nil {
				continue
			}
			for _, at := range known.Runs {
				if c.outside(h, base, c.p.Chains.At(call, at)) {
					c.report(h, call, "%s runs statements on the db from outside of the transaction, on another connection: give it the one that the function was given",
						calls.Name(call).Name)
				}
			}
		}
	}
}

// base is the db that the transaction is begun on.
func (c *checker) base(h *handovers.Handover) (flow.Origin, bool) {
	if len(h.Base) == 0 {
		return flow.Origin{}, false
	}
	for _, chain := range h.Base[1:] {
		if chain.Root != h.Base[0].Root {
			return flow.Origin{}, false
		}
	}
	return h.Base[0].Root, true
}

// inTransaction reports whether the base itself is a transaction: then the new one is a part of it, on its connection.
func (c *checker) inTransaction(h *handovers.Handover, base flow.Origin) bool {
	return h.Kind == gormapi.OnceKind || base.Kind == flow.Begun || c.p.Handovers.IsGiven(base) ||
		base.Kind == flow.Param && base.Path == "" && base.Fn.Params[base.Index].Name() == "tx"
}

func (c *checker) outside(h *handovers.Handover, base flow.Origin, on []flow.Chain) bool {
	if len(on) == 0 {
		return false
	}
	nested := c.inTransaction(h, base)
	return !slices.ContainsFunc(on, func(chain flow.Chain) bool {
		from := c.p.Handovers.Outside(h, chain.Root)
		if from == base {
			return nested || c.replaced(h, chain.Root)
		}
		return !c.sameDatabase(h, base, from) || c.replaced(h, chain.Root)
	})
}

// replaced reports whether the function assigns to the field that a db is read from.
func (c *checker) replaced(h *handovers.Handover, from flow.Origin) bool {
	for _, part := range c.p.Order.RunBy(h.Given.Fn) {
		for instr := range calls.Instructions(part) {
			if store, ok := instr.(*ssa.Store); ok && gormapi.IsDB(store.Val.Type()) {
				if at, ok := store.Addr.(*ssa.FieldAddr); ok {
					if o, ok := c.p.Chains.Origin(at); ok && o == from {
						return true
					}
				}
			}
		}
	}
	return false
}

func (c *checker) report(h *handovers.Handover, call ssa.CallInstruction, format string, args ...any) {
	if c.reported[call.Pos()] {
		return
	}
	c.reported[call.Pos()] = true
	c.p.ReportFix(c.pass, call.Pos(), c.replaceDB(h, call), format, args...)
}

// replaceDB puts the given db in the place of the outer one, where the statement begins with it.
func (c *checker) replaceDB(h *handovers.Handover, call ssa.CallInstruction) *analysis.SuggestedFix {
	source := c.p.Source.CallAt(call.Pos())
	if source == nil || h.Given.DB == nil {
		return nil
	}
	var at ast.Expr
	if s, ok := c.p.Statements.Of(call); ok && !s.Ours() {
		at = source.Fun
	} else if ok && len(source.Args) > 0 {
		at = source.Args[0]
	}
	for {
		switch e := at.(type) {
		case *ast.ParenExpr:
			at = e.X
			continue
		case *ast.CallExpr:
			if t := c.pass.TypesInfo.TypeOf(e.Fun); t != nil && isG(e) && len(e.Args) > 0 {
				at = e.Args[0]
			} else {
				at = e.Fun
			}
			continue
		case *ast.SelectorExpr:
			if t := c.pass.TypesInfo.TypeOf(e); t == nil || !gormapi.IsDB(t) {
				at = e.X
				continue
			}
		}
		break
	}
	if at == nil || c.pass.TypesInfo.TypeOf(at) == nil || !gormapi.IsDB(c.pass.TypesInfo.TypeOf(at)) {
		return nil
	}
	return c.replace(at, h.Given.DB)
}

func isG(call *ast.CallExpr) bool {
	fun := call.Fun
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	selector, ok := fun.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "G"
}

// replace writes the parameter's name, if it means the parameter there.
func (c *checker) replace(at ast.Expr, param *ssa.Parameter) *analysis.SuggestedFix {
	name := param.Name()
	if name == "" || name == "_" {
		return nil
	}
	scope := c.pass.Pkg.Scope().Innermost(at.Pos())
	if scope == nil {
		return nil
	}
	if _, meant := scope.LookupParent(name, at.Pos()); meant != param.Object() || !c.usedElsewhere(at, param.Parent()) {
		return nil
	}
	return code.Replace("use "+name, at.Pos(), at.End(), name)
}

// usedElsewhere reports whether the variable that an expression begins with is still used when the function does not:
// Go compiles no variable that nobody uses.
func (c *checker) usedElsewhere(at ast.Expr, fn *ssa.Function) bool {
	for {
		selector, ok := ast.Unparen(at).(*ast.SelectorExpr)
		if !ok {
			break
		}
		at = selector.X
	}
	name, ok := ast.Unparen(at).(*ast.Ident)
	if !ok || fn.Syntax() == nil {
		return false
	}
	v, ok := c.pass.TypesInfo.Uses[name].(*types.Var)
	if !ok || v.Kind() != types.LocalVar {
		return ok // a parameter need not be used
	}
	for use, object := range c.pass.TypesInfo.Uses {
		if object == v && (use.Pos() < fn.Syntax().Pos() || use.Pos() >= fn.Syntax().End()) {
			return true
		}
	}
	return false
}
