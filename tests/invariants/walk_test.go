package invariants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"pgregory.net/rapid"
)

// TestWalk lets two writers, each with structs of his own of one household, take turns with three to six calls, in
// transactions of all kinds. rapid prints the seed of a walk that fails, and shortens it.
func TestWalk(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t)
	until := untilOf(t)
	for again := true; again; again = time.Now().Before(until) && !t.Failed() {
		rapid.Check(t, func(r *rapid.T) { walk(r, t, w) })
	}
}

// actor is a writer with what he has read.
type actor struct {
	name   string
	db     *gorm.DB
	house  *household
	ledger ledger
}

// walker is one walk.
type walker struct {
	r     *rapid.T
	t     testing.TB
	w     *world
	steps []string
	// again are rows that were deleted and came back: their versions begin anew, and who read them before is ahead of them.
	again map[string]bool
}

func walk(r *rapid.T, t testing.TB, w *world) {
	t.Helper()
	k := &walker{r: r, t: t, w: w, again: map[string]bool{}}
	configs := []string{"default", "PrepareStmt", "SkipDefaultTransaction", "simple protocol"}
	n := w.storeHousehold(t)
	actors := []*actor{{name: "P"}, {name: "Q"}}
	for _, a := range actors {
		a.db = w.dbs[rapid.SampledFrom(configs).Draw(r, "configuration of "+a.name)]
		a.reads(t, w, n)
	}
	for range rapid.IntRange(3, 6).Draw(r, "turns") {
		a := rapid.SampledFrom(actors).Draw(r, "actor")
		if rapid.IntRange(0, 4).Draw(r, "reads again") == 0 && w.hasHousehold(t, n) {
			k.steps = append(k.steps, a.name+" reads again")
			a.reads(t, w, n)
		}
		if !k.turn(a) {
			return // what follows a failure that is known proves nothing
		}
	}
}

// reads gives an actor new structs.
func (a *actor) reads(t testing.TB, w *world, n int64) {
	t.Helper()
	a.ledger = ledger{}
	a.house = w.readHousehold(t, w.plain, n, &a.ledger)
}

// walkScopes end in every way.
var walkScopes = []string{"implicit", "Transaction", "Transaction, error", "Begin and Rollback", "Commit fails", "savepoint", "savepoint, error",
	"SavePoint", "raw savepoint", "gormlock.Transaction", "gormlock.Transaction, error dropped", "gormlock.Transaction, error", "gormlock.Transaction, second attempt"}

var anyState, recreated = state{name: "any", read: true}, state{name: "recreated", read: true}

// turn lets an actor make one call or two in one transaction, and judges what came of it. It reports whether all was well.
func (k *walker) turn(a *actor) bool {
	t, w := k.t, k.w
	around := scopeNamed(rapid.SampledFrom(walkScopes).Draw(k.r, "transaction"))
	var calls []*branch
	for range rapid.IntRange(1, 2).Draw(k.r, "calls") {
		calls = append(calls, &branches[rapid.IntRange(0, len(branches)-1).Draw(k.r, "call")])
	}
	if !around.inside {
		calls = calls[:1]
	}
	names := make([]string, len(calls))
	for i, call := range calls {
		names[i] = call.name
	}
	from := w.now(t)
	c := &cell{w: w, form: &anyRow, shape: orders, state: &anyState, scope: around, ctx: context.Background(), ledger: a.ledger}
	for _, h := range a.ledger.all {
		h.keep()
	}
	failed := false
	c.end = around.run(c, a.db, func(tx *gorm.DB) (err error) {
		for _, call := range calls {
			if a.house.fits(call) {
				a.house.assign(call.set...)
				if err = call.run(a.house, tx); err != nil {
					failed = true
					break
				}
			}
		}
		c.err = err
		return err
	})
	k.steps = append(k.steps, fmt.Sprintf("%s: %s in %s: %v, %v", a.name, strings.Join(names, ", "), around.name, c.err, c.end))
	c.changes = c.written(w.changes(t, from, w.now(t)))
	if c.undone() && len(c.changes) > 0 {
		c.report("undone", "it was rolled back, and this is stored: %v", &c.changes[0])
	}
	if failed && len(calls) == 1 && len(c.changes) > 0 {
		c.report("error but stored", "%v, and this is stored: %v", c.err, &c.changes[0])
	}
	for i := range c.changes {
		one := &c.changes[i]
		c.judgeRelative(one, slices.ContainsFunc(calls, func(b *branch) bool { return slices.Contains(b.blind, one.Tab) || b.creates }))
		if one.Op == "DELETE" {
			k.again[one.Tab+" "+one.Key] = true
		}
	}
	for _, h := range a.ledger.all {
		if k.again[h.shape.table+" "+h.shape.auditKey(h.ptr)] {
			c.state = &recreated
		}
		c.judgeMemory(t, h)
		c.state = &anyState
	}
	for _, v := range c.found {
		if !k.isKnown(c, calls, v.rule) {
			k.r.Fatalf("%s: %s\n\t%s", v.rule, v.what, strings.Join(k.steps, "\n\t"))
		}
	}
	for _, h := range a.ledger.all {
		h.learn(t, w)
	}
	return len(c.found) == 0
}

// fits reports whether what a call is about is still there in the structs: GORM takes what it unlinked out of them.
func (h *household) fits(b *branch) bool {
	return h.order != nil && (b.name != "Updates with a line" || h.line != nil)
}

// isKnown reports whether a failure is of a class of the matrix.
func (k *walker) isKnown(c *cell, calls []*branch, rule string) bool {
	for _, call := range calls {
		one := kinship{cell: *c, branch: call, met: &met{name: "gone"}}
		if one.classOf(rule) != "" {
			return true
		}
	}
	return false
}

// learn takes note of what a struct is after a call: the state of its row, if it is at that version.
func (h *held) learn(t testing.TB, w *world) {
	t.Helper()
	row := w.read(t, h.shape, h.ptr)
	switch {
	case h.shape.unread(h.ptr):
		h.read = 0
	case row != nil && sameVersion(h.shape.versionOf(h.ptr), h.shape.versionOf(row)):
		h.read = w.state(t, h.shape, h.ptr)
	}
}

// hasHousehold reports whether the order is there.
func (w *world) hasHousehold(t testing.TB, n int64) bool {
	t.Helper()
	err := w.plain.First(&Order{}, n).Error
	if !errors.Is(err, gorm.ErrRecordNotFound) {
		must(t, err)
	}
	return err == nil
}
