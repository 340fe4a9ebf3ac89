// Package old finds structs that were read before a lock and are written under it.
package old

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/gormlock/gormlock/gormlockvet/internal/calls"
	"github.com/gormlock/gormlock/gormlockvet/internal/code"
	"github.com/gormlock/gormlock/gormlockvet/internal/flow"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
	"github.com/gormlock/gormlock/gormlockvet/internal/models"
	"github.com/gormlock/gormlock/gormlockvet/internal/reads"
	"github.com/gormlock/gormlock/gormlockvet/internal/statements"
	"github.com/gormlock/gormlock/gormlockvet/internal/values"
)

// Analyzer is the finding.
var Analyzer = code.New("old", "find structs that were read before the lock and are written under it\n\n"+
	"Whoever held the lock meanwhile has changed the row. The struct does not know: written as it is it takes the change\n"+
	"back, or, where the model has a version, is refused however often it is tried.", run)

func run(pass *analysis.Pass, p *code.Package) {
	c := checker{
		pass: pass, p: p, reads: reads.New(pass.Pkg, p.Variables, p.Chains, p.Known, p.Statements),
		locks: map[*ssa.Function][]lock{},
	}
	for _, fn := range p.Funcs {
		for call := range calls.In(fn) {
			for _, struc := range c.written(call) {
				c.check(fn, call, struc)
			}
		}
	}
}

type checker struct {
	pass  *analysis.Pass
	p     *code.Package
	reads *reads.Reads
	locks map[*ssa.Function][]lock
}

// lock is a place from which on a lock is held: by a function that is run under it, or until the end of its transaction.
type lock struct {
	at       ssa.CallInstruction
	under    *ssa.Function // that is run under it
	within   *ssa.Function // the transaction's function
	rows     *types.Named  // a row lock on other structs of this type
	releases []ssa.Instruction
}

func (l lock) holds(p *code.Package, at ssa.Instruction) bool {
	if l.under != nil {
		return p.Order.Inside(at, l.under)
	}
	if l.within != nil && !p.Order.Inside(at, l.within) || slices.ContainsFunc(l.releases, func(r ssa.Instruction) bool { return p.Order.Before(r, at) }) {
		return false
	}
	return p.Order.Before(l.at, at)
}

// written returns the structs whose values a call writes.
func (c *checker) written(call ssa.CallInstruction) (all []flow.Origin) {
	add := func(v ssa.Value) {
		if o, ok := c.p.Chains.Struct(v); ok && o.Kind == flow.Local && !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	for _, v := range c.reads.Saved(call) {
		add(v)
	}
	s, ok := c.p.Statements.Of(call)
	if !ok || s.Ours() || s.Role != gormapi.Writes || s.Name.Recv != "DB" {
		return all
	}
	for _, chain := range s.On {
		if c.p.Carries.Of(chain)&gormapi.Version != 0 {
			return nil // IfUnchanged, ExpectVersion
		}
	}
	args := calls.Args(call)
	switch s.Name.Name {
	case "Save", "Updates", "UpdateColumns":
		add(args[0])
		if given, isMap := values.Map(args[0]); isMap {
			for _, v := range given {
				all = append(all, c.sources(s, v)...)
			}
		}
	case "Update", "UpdateColumn":
		all = append(all, c.sources(s, args[1])...)
	}
	return all
}

// sources returns the structs of the written model from whose fields a value is computed. A key does not grow old.
func (c *checker) sources(s statements.Statement, v ssa.Value) (all []flow.Origin) {
	var model *types.Named
	for _, t := range s.Types() {
		if named := models.NamedOf(t); named != nil {
			model = named
		}
	}
	if model == nil {
		return nil
	}
	seen := map[ssa.Value]bool{}
	var look func(v ssa.Value, depth int)
	look = func(v ssa.Value, depth int) {
		const deepest = 10
		if v == nil || seen[v] || depth > deepest {
			return
		}
		seen[v] = true
		if load, ok := v.(*ssa.UnOp); ok {
			if at, ok := load.X.(*ssa.FieldAddr); ok && models.NamedOf(at.X.Type()) == model && !strings.EqualFold(values.Field(at), "id") {
				if o, ok := c.p.Chains.Origin(at.X); ok && o.Kind == flow.Local && o.Path == "" && !slices.Contains(all, o) {
					all = append(all, o)
				}
				return
			}
		}
		for _, part := range c.p.Variables.MadeOf(v) {
			look(part, depth+1)
		}
	}
	look(v, 0)
	return all
}

// check looks for a read of the struct before the lock that its write is under, and for none after.
func (c *checker) check(fn *ssa.Function, write ssa.CallInstruction, struc flow.Origin) {
	locks := c.locksAround(fn)
	reads := c.reads.Of(struc, fn)
	for _, l := range locks {
		own := l.at == write
		if !own && !l.holds(c.p, write) || l.rows != nil && l.rows != named(struc) {
			continue
		}
		before := c.readBefore(locks, l, write, reads)
		if before >= 0 {
			c.p.Report(c.pass, write.Pos(), "%s was read on line %d, before the lock: what others wrote until then is %s. Read it again under the lock, as gormlock.LockRow does",
				name(struc), c.pass.Fset.Position(reads[before].At.Pos()).Line, c.consequence(struc))
			return
		}
	}
}

// readBefore returns which of the reads is the last before the lock, -1 where the struct may be read again later, or was
// read under a lock.
func (c *checker) readBefore(locks []lock, l lock, write ssa.CallInstruction, reads []reads.Read) int {
	own, last := l.at == write, -1
	for i, r := range reads {
		switch {
		case r.At == write || c.p.Order.Before(write, r.At):
		case c.underLock(locks, r), !own && (l.holds(c.p, r.At) || r.At == l.at), !c.p.Order.Before(r.At, l.at):
			return -1
		case r.Known:
			last = i
		}
	}
	return last
}

func (c *checker) consequence(struc flow.Origin) string {
	if m := models.OfType(struc.Type()); m != nil && m.Version != "" {
		return "a stale version, again and again"
	}
	return "overwritten"
}

func named(o flow.Origin) *types.Named { return models.NamedOf(o.Type()) }

func name(o flow.Origin) string {
	if alloc, ok := o.Value.(*ssa.Alloc); ok && alloc.Comment != "" && alloc.Comment != "new" && alloc.Comment != "complit" {
		return alloc.Comment
	}
	return "the " + named(o).Obj().Name()
}

// underLock reports whether a struct was read under a lock itself, or by a query that locks its row.
func (c *checker) underLock(locks []lock, r reads.Read) bool {
	for _, chain := range r.Statement.On {
		if c.p.Carries.Of(chain).Locks() {
			return true
		}
	}
	if ours, ok := gormapi.CallOf(r.Statement.Name); ok && ours.Locks {
		return true
	}
	return slices.ContainsFunc(locks, func(l lock) bool { return l.at != r.At && l.rows == nil && l.holds(c.p, r.At) })
}

// locksAround returns the locks that the function takes which declares fn, with all literals in it.
func (c *checker) locksAround(fn *ssa.Function) []lock {
	for fn.Parent() != nil {
		fn = fn.Parent()
	}
	if found, ok := c.locks[fn]; ok {
		return found
	}
	var found []lock
	for _, part := range calls.Family(fn) {
		for call := range calls.In(part) {
			if l, ok := c.lockAt(call); ok {
				found = append(found, l)
			}
		}
	}
	for _, h := range c.p.Handovers.All() {
		if h.Locks || h.Kind == gormapi.DoKind {
			found = append(found, lock{at: h.Site, under: h.Given.Fn})
		}
	}
	c.locks[fn] = found
	return found
}

func (c *checker) lockAt(call ssa.CallInstruction) (lock, bool) {
	name := calls.Name(call)
	switch {
	case name == gormapi.Func{Pkg: gormapi.Gormlock, Name: "AcquireXactLock"}:
		return lock{at: call, within: c.transactionOf(c.p.Chains.Of(call.Common().Args[0]))}, true
	case (name.Pkg == gormapi.SessionLock || name.Pkg == gormapi.Lease) && strings.Contains(name.Name, "Acquire"):
		return lock{at: call, releases: c.releases(call)}, true
	}
	s, ok := c.p.Statements.Of(call)
	if !ok || s.Ours() || len(s.On) == 0 {
		return lock{}, false
	}
	carry := gormapi.XactLock | gormapi.RowLock
	for _, chain := range s.On {
		carry &= c.p.Carries.Of(chain)
	}
	l := lock{at: call, within: c.transactionOf(s.On)}
	switch {
	case carry&gormapi.XactLock != 0:
		if l.within == nil && s.Role == gormapi.Writes && s.On[0].Root.Kind != flow.Begun {
			l.within = nowhere // the statement's own transaction
		}
		return l, true
	case carry&gormapi.RowLock != 0 && s.Role == gormapi.Reads && len(calls.Args(call)) > 0:
		l.rows = models.NamedOf(values.Bare(calls.Args(call)[0]).Type())
		return l, l.rows != nil
	}
	return lock{}, false
}

// nowhere is the function of a transaction that ends with its statement.
var nowhere = new(ssa.Function)

// transactionOf returns the function that was given the transaction, nil where none is known.
func (c *checker) transactionOf(on []flow.Chain) *ssa.Function {
	for _, chain := range on {
		if c.p.Handovers.IsGiven(chain.Root) {
			return chain.Root.Fn
		}
	}
	return nil
}

func (c *checker) releases(acquire ssa.CallInstruction) (found []ssa.Instruction) {
	for call := range calls.In(acquire.Parent()) {
		if _, deferred := call.(*ssa.Defer); !deferred && calls.Name(call).Name == "Release" {
			found = append(found, call)
		}
	}
	return found
}
