// Package dropped finds locks and clauses of gormlock on a db that nobody runs a statement on.
package dropped

import (
	"go/ast"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/code"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/statements"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Analyzer is the finding.
var Analyzer = code.New("dropped", "find locks and clauses that GORM drops\n\n"+
	"gorm.G starts a statement of its own and leaves behind what was put on the db it is given. So does a raw sub-query,\n"+
	"a group of conditions, and a db whose result nobody uses. The lock is not taken, and often nothing says so.", run)

func run(pass *analysis.Pass, p *code.Package) {
	for _, fn := range p.Funcs {
		for call := range calls.In(fn) {
			name := calls.Name(call)
			if name.Pkg != gormapi.Gorm {
				continue
			}
			switch {
			case name.Name == "G" && name.Recv == "":
				generic(pass, p, call)
			case name.Name == "Session" && statements.NewDB(calls.Args(call)[0]):
				session(pass, p, call)
			default:
				arguments(pass, p, call)
			}
			unused(pass, p, call)
		}
	}
}

func carried(p *code.Package, db ssa.Value) (all gormapi.Carry) {
	for _, c := range p.Chains.Of(db) {
		all |= p.Carries.Of(c)
	}
	return all
}

// what says what is dropped.
func what(carry gormapi.Carry) string {
	var words []string
	for _, w := range []struct {
		bit  gormapi.Carry
		word string
	}{
		{gormapi.XactLock, "advisory lock"}, {gormapi.RowLock, "row lock"}, {gormapi.Version, "version clause"}, {gormapi.Fence, "fence"},
	} {
		if carry&w.bit != 0 {
			words = append(words, w.word)
		}
	}
	return "the " + strings.Join(words, " and the ")
}

func generic(pass *analysis.Pass, p *code.Package, call ssa.CallInstruction) {
	if carry := carried(p, call.Common().Args[0]); carry.Ours() {
		p.ReportFix(pass, call.Pos(), asClauses(pass, p, call),
			"gorm.G starts a new statement and drops %s of the db it is given, without an error: give gorm.G the clause, as in gorm.G[T](db, gormlock.XactLock(key))", what(carry))
	}
}

func session(pass *analysis.Pass, p *code.Package, call ssa.CallInstruction) {
	if carry := carried(p, calls.Receiver(call)); carry.Ours() {
		p.Report(pass, call.Pos(), "a Session with NewDB drops %s that was put on the db before: put it on the new session", what(carry))
	}
}

// arguments looks at dbs that become a part of another statement.
func arguments(pass *analysis.Pass, p *code.Package, call ssa.CallInstruction) {
	name := calls.Name(call)
	if name.Name == "Model" || name.Name == "Preload" || name.Recv == "" && name.Name != "Expr" {
		return
	}
	var outer gormapi.Carry
	if recv := calls.Receiver(call); recv != nil {
		outer = carried(p, recv)
	}
	for i, arg := range calls.Args(call) {
		parts := []ssa.Value{arg}
		variadic, ok := values.Variadic(arg)
		if ok {
			parts = variadic
		}
		for _, part := range parts {
			db, isInterface := part.(*ssa.MakeInterface)
			if !isInterface || !gormapi.IsDB(db.X.Type()) {
				continue
			}
			group := i == 0 && !ok && (name.Name == "Where" || name.Name == "Or" || name.Name == "Not")
			if why := lost(carried(p, db.X), outer, group, name.Name == "Joins" || name.Name == "InnerJoins"); why != "" {
				p.Report(pass, place(db, call), "%s: put it on the statement around it", why)
			}
		}
	}
}

// place is where the db was built, for a reader who looks for the lock.
func place(db *ssa.MakeInterface, call ssa.CallInstruction) token.Pos {
	if built, ok := db.X.(*ssa.Call); ok {
		return built.Pos()
	}
	return call.Pos()
}

// lost says what a statement leaves behind of a part of it.
func lost(carry, outer gormapi.Carry, group, join bool) string {
	switch {
	case carry&gormapi.XactLock != 0 && outer&gormapi.XactLock == 0:
		return "the advisory lock on a part of a statement is never taken"
	case carry&gormapi.RowLock != 0 && group:
		return "the row lock on a group of conditions is dropped with its db"
	case carry&gormapi.RowLock != 0 && join:
		return "the row lock on the conditions of a join is dropped with its db"
	case carry&gormapi.RowLock != 0 && carry&gormapi.Text != 0:
		return "the row lock on a raw sub-query is dropped, without an error, for its text is copied as it is"
	case carry&gormapi.RowLock != 0 && carry&gormapi.Waits != 0:
		return "a row lock with Try or Timeout does not work in a sub-query"
	case carry&gormapi.Version != 0 && outer&gormapi.Version == 0:
		return "the version clause on a part of a statement compares nothing"
	case carry&gormapi.Fence != 0 && group && outer&gormapi.Fence == 0:
		return "the fence on a group of conditions guards nothing"
	}
	return ""
}

// unused reports a lock that is put on a db whose result is dropped. A db in the middle of a chain changes in place, and
// a parameter may be one.
func unused(pass *analysis.Pass, p *code.Package, call ssa.CallInstruction) {
	built, ok := call.(*ssa.Call)
	name := calls.Name(call)
	if !ok || name.Recv != "DB" || name.Name != "Scopes" && name.Name != "Clauses" || len(*built.Referrers()) > 0 {
		return
	}
	carry := p.Carries.OfAll(calls.Args(call)[0])
	if !carry.Ours() {
		return
	}
	for _, c := range p.Chains.Of(calls.Receiver(call)) {
		if !fresh(p, c) {
			return
		}
	}
	p.Report(pass, call.Pos(), "%s returns a db that carries %s, and nobody uses it: the db it is called on stays as it is", name.Name, what(carry))
}

// fresh holds for a db that starts a new statement with each call.
func fresh(p *code.Package, c flow.Chain) bool {
	for _, link := range c.Links {
		switch calls.Name(link).Name {
		case "WithContext", "Session", "Debug":
		default:
			return false
		}
	}
	switch c.Root.Kind {
	case flow.Opened, flow.Begun, flow.Global:
		return true
	case flow.Param:
		return c.Root.Path != "" || len(c.Links) > 0 || p.Handovers.IsGiven(c.Root)
	default:
		return false
	}
}

// asClauses turns gorm.G[T](db.Scopes(gormlock.WithXactLock(key))) into gorm.G[T](db, gormlock.XactLock(key)).
func asClauses(pass *analysis.Pass, p *code.Package, call ssa.CallInstruction) *analysis.SuggestedFix {
	source := p.Source.CallAt(call.Pos())
	if source == nil || len(source.Args) == 0 {
		return nil
	}
	put, ok := ast.Unparen(source.Args[0]).(*ast.CallExpr)
	if !ok || put.Ellipsis.IsValid() {
		return nil
	}
	chain, ok := put.Fun.(*ast.SelectorExpr)
	if !ok || chain.Sel.Name != "Scopes" && chain.Sel.Name != "Clauses" {
		return nil
	}
	clauses := []string{p.Source.Text(chain.X)}
	for _, arg := range put.Args {
		text := p.Source.Text(arg)
		if chain.Sel.Name == "Scopes" {
			scope, isCall := ast.Unparen(arg).(*ast.CallExpr)
			if !isCall {
				return nil
			}
			made, isSelector := scope.Fun.(*ast.SelectorExpr)
			if !isSelector || !strings.HasPrefix(made.Sel.Name, "With") || pass.TypesInfo.Uses[made.Sel].Pkg().Path() != gormapi.Gormlock {
				return nil
			}
			text = p.Source.Text(made.X) + "." + strings.TrimPrefix(made.Sel.Name, "With") + strings.TrimPrefix(text, p.Source.Text(made))
		}
		clauses = append(clauses, text)
	}
	return code.Replace("give gorm.G the clause", source.Args[0].Pos(), source.Args[0].End(), strings.Join(clauses, ", "))
}
