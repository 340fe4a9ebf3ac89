package outer

import (
	"go/ast"
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/handovers"
)

// context looks for calls that are given a ctx from outside.
func (c *checker) context(h *handovers.Handover) {
	for _, part := range c.p.Order.RunBy(h.Given.Fn) {
		for call := range calls.In(part) {
			if harmless(gormapi.NameOf(calls.Callee(call))) {
				continue
			}
			for _, arg := range calls.Args(call) {
				if gormapi.IsContext(arg.Type()) && c.outerCtx(h, arg) && !c.reported[call.Pos()] {
					c.reported[call.Pos()] = true
					c.p.ReportFix(c.pass, call.Pos(), c.replaceCtx(h, call),
						"the ctx from outside does not end when the lock is lost, and carries no token: use the one that the function was given")
				}
			}
		}
	}
}

// outerCtx reports whether a ctx belongs to the functions around, or is made of one that does.
func (c *checker) outerCtx(h *handovers.Handover, ctx ssa.Value) bool {
	chains := c.p.Chains.Of(ctx)
	if len(chains) == 0 {
		return false
	}
	for _, chain := range chains {
		if !keptByHandler(h, chain.Root) && !c.belongsOutside(h, c.p.Handovers.Outside(h, chain.Root)) {
			return false
		}
	}
	return true
}

// keptByHandler reports whether a ctx is a field of the struct whose method handles the jobs: it was there before them.
func keptByHandler(h *handovers.Handover, o flow.Origin) bool {
	return h.Kind == gormapi.WorkKind && o.Kind == flow.Param && o.Fn == h.Given.Fn && h.Given.IsReceiver(o.Index) && o.Path != ""
}

func (c *checker) belongsOutside(h *handovers.Handover, o flow.Origin) bool {
	switch o.Kind {
	case flow.Param:
		return around(o.Fn, h.Given.Fn) || o.Fn == h.In && o.Path == "" || h.Ctx != nil && o.Path != "" && c.isBase(h, o)
	case flow.Local:
		call, ok := o.Value.(*ssa.Call)
		if !ok {
			return false
		}
		if around(call.Parent(), h.Given.Fn) {
			return calls.Name(call).Name != "WithoutCancel"
		}
		if name := calls.Name(call); name.Pkg == "context" && strings.HasPrefix(name.Name, "With") && name.Name != "WithoutCancel" {
			return c.outerCtx(h, call.Call.Args[0])
		}
	default: // a ctx that everybody has
	}
	return false
}

func (c *checker) isBase(h *handovers.Handover, o flow.Origin) bool {
	base, ok := c.p.Chains.Origin(h.Ctx)
	return ok && base == o
}

// around reports whether inner is a function literal in fn.
func around(fn, inner *ssa.Function) bool {
	for outer := inner.Parent(); outer != nil; outer = outer.Parent() {
		if outer == fn {
			return true
		}
	}
	return false
}

// harmless holds for calls for which it does not matter when their ctx ends: those of package context, and logs.
func harmless(f gormapi.Func) bool {
	if f.Pkg == "context" {
		return true
	}
	if strings.Contains(f.Pkg, "log") || strings.Contains(f.Pkg, "otel") || strings.Contains(f.Pkg, "trace") {
		return true
	}
	return logs.MatchString(f.Name)
}

// logs matches the names by which programs log.
var logs = regexp.MustCompile(`^(?i:debug|info|warn|warning|error|trace|print|log)(f|ln|w|[A-Z].*)?$`)

// replaceCtx puts the given ctx in the place of the outer one.
func (c *checker) replaceCtx(h *handovers.Handover, call ssa.CallInstruction) *fix {
	source := c.p.Source.CallAt(call.Pos())
	if source == nil {
		return nil
	}
	for _, e := range source.Args {
		if t := c.pass.TypesInfo.TypeOf(e); t != nil && gormapi.IsContext(t) {
			// One that was made of the outer ctx has a deadline or a value that the given one lacks.
			if name, plain := ast.Unparen(e).(*ast.Ident); plain {
				if v, ok := c.pass.TypesInfo.Uses[name].(*types.Var); ok && v.Kind() == types.ParamVar {
					return c.replace(e, h.Given.Ctx)
				}
			}
		}
	}
	return nil
}
