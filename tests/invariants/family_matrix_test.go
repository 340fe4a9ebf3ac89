package invariants

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// met is what became of a relative between the reading and the statement.
type met struct {
	name string
	meet func(t testing.TB, w *world, h *held)
}

var meetings = []met{
	{"fresh", func(testing.TB, *world, *held) {}},
	{"stale", func(t testing.TB, w *world, h *held) { t.Helper(); w.rivalWrites(t, h.shape, h.ptr, rivals) }},
	{"gone", func(t testing.TB, w *world, h *held) { t.Helper(); w.rivalDeletes(t, h.shape, h.ptr) }},
	{"unread", func(_ testing.TB, _ *world, h *held) { h.row().FieldByName("Version").SetInt(0); h.read = 0 }},
}

// kinship is one crossing of a branch, a relative, what it met, a transaction and a configuration.
type kinship struct {
	cell
	branch   *branch
	relative string
	met      *met
	house    *household
}

func (k *kinship) name() string {
	return fmt.Sprintf("%s | %s | %s | %s | %s", k.branch.name, k.relative, k.met.name, k.scope.name, k.config)
}

// anyRow is the form that stands for a branch to the judge: what it does is not known to it.
var anyRow = form{name: "branch", kind: free, does: other, several: true}

func (k *kinship) run(t testing.TB) {
	t.Helper()
	k.ctx, k.form, k.shape, k.state = context.Background(), &anyRow, orders, &state{name: k.met.name, read: true}
	db := k.w.dbs[k.config]
	var from int64
	ready := false
	once := func(tx *gorm.DB) error {
		if !ready {
			ready = true
			k.house = k.w.readHousehold(t, k.w.plain, k.w.storeHousehold(t), &k.ledger)
			k.met.meet(t, k.w, k.house.held[k.relative])
			k.house.assign(k.branch.set...)
			from = k.w.now(t)
			for _, h := range k.ledger.all {
				h.keep()
			}
		}
		return k.answerOf(func(tx *gorm.DB) error { return k.branch.run(k.house, tx) }, tx)
	}
	k.end = k.scope.run(&k.cell, db, once)
	k.changes = k.written(k.w.changes(t, from, k.w.now(t)))
	k.judge(t)
}

func (k *kinship) judge(t testing.TB) {
	t.Helper()
	target := k.house.held[k.relative]
	stale := k.met.name != "fresh" && slices.Contains(k.branch.writes, k.relative) &&
		(k.met.name != "unread" || !k.branch.creates || k.relative != "order")
	switch {
	case k.err == nil && stale && !k.undone():
		k.report("accepted", "it said nil though %s is %s", k.relative, k.met.name)
	case k.err != nil && k.met.name == "fresh":
		k.report("refused", "%v", k.err)
	case k.err != nil && !errors.Is(k.err, gormlock.ErrStale) && !errors.Is(k.err, gormlock.ErrVersionMissing):
		k.report("other error", "%v", k.err)
	}
	if k.err != nil && len(k.changes) > 0 {
		k.report("error but stored", "%v, and this is stored: %v", k.err, &k.changes[0])
	}
	if k.undone() && len(k.changes) > 0 {
		k.report("undone", "it was rolled back, and this is stored: %v", &k.changes[0])
	}
	if k.err == nil {
		for i := range k.changes {
			k.judgeRelative(&k.changes[i], slices.Contains(k.branch.blind, k.changes[i].Tab))
		}
		k.judgeDone(t)
	}
	for _, h := range k.ledger.all {
		k.judgeMemory(t, h)
	}
	for _, h := range []*held{target, k.house.held["other"]} {
		if !h.shape.unread(h.ptr) {
			k.probe(t, h)
		}
	}
}

// judgeRelative: a row of the family is changed by who has read it, or blindly, by a condition that says so; no deleted row comes
// back.
func (c *cell) judgeRelative(one *change, blindly bool) {
	structs := c.ledger.of(one)
	if one.Op == "INSERT" {
		if len(structs) > 0 && structs[0].read != 0 {
			c.report("inserted again", "the row of %s was gone, and is back: %v", structs[0].name, one)
		}
		return
	}
	if one.Op == "UPDATE" {
		c.judgeVersion(one)
	}
	if !blindly && len(structs) > 0 && (one.Op == "DELETE" || changedOtherThan(one)) {
		c.judgeReader(one, structs)
	}
}

// judgeDone: what is written by this branch holds what its struct held.
func (k *kinship) judgeDone(t testing.TB) {
	t.Helper()
	if k.undone() || k.end != nil || k.scope.again || strings.HasPrefix(k.branch.name, "Delete with") {
		return
	}
	for _, name := range k.branch.writes {
		h := k.house.held[name]
		row := k.w.read(t, h.shape, h.ptr)
		if row == nil || reflect.ValueOf(row).Elem().FieldByName("A").Int() != written {
			k.report("silent no-op", "it said nil, and %s is stored as %+v", name, row)
		}
	}
}

// familyScopes are the transactions that branches are run in.
var familyScopes = []string{"implicit", "Transaction, error", "Begin and Commit, error dropped", "savepoint, error", "gormlock.Transaction", "gormlock.Transaction, second attempt"}

// kinships are the cells: every branch meets each of its relatives in each state, and each transaction.
func kinships() []*kinship {
	configs := []string{"default", "PrepareStmt", "simple protocol", "SkipDefaultTransaction", "QueryFields"}
	var all []*kinship
	n := 0
	for i := range branches {
		for _, relative := range relatives {
			for m := range meetings {
				if m == 0 && relative != "order" {
					continue
				}
				for s, name := range familyScopes {
					if s > 0 && (n+s)%3 != 0 {
						continue // the rest is drawn when there is more time
					}
					n++
					config := "default"
					if n%4 == 0 {
						config = configs[n/4%len(configs)]
					}
					k := &kinship{branch: &branches[i], relative: relative, met: &meetings[m]}
					k.scope, k.config = scopeNamed(name), config
					all = append(all, k)
				}
			}
		}
	}
	return all
}

func scopeNamed(name string) *scope {
	return &scopes[slices.IndexFunc(scopes, func(s scope) bool { return s.name == name })]
}

// TestFamily runs branches: what breaks a promise must be in testdata/family.txt under its class, and what stands there
// must break one.
func TestFamily(t *testing.T) {
	t.Parallel()
	known := readKnownIn(t, familyFile)
	found, seen := newKnown(), &tally{}
	var mu sync.Mutex
	onWorlds(t, thinned(kinships()), func(w *world, t testing.TB, k *kinship) {
		t.Helper()
		k.w = w
		k.run(t)
		mu.Lock()
		defer mu.Unlock()
		seen.cells++
		for _, rule := range k.rules() {
			class := k.classOf(rule)
			found.add(class, k.name())
			if class == "" || !*update && !known.has(class, k.name()) {
				t.Errorf("%s: %s\n\t%s", rule, k.name(), k.told())
			}
		}
		for _, v := range k.found {
			seen.lines = append(seen.lines, fmt.Sprintf("%s | %s | %s | %.400s", v.rule, k.classOf(v.rule), k.name(), strings.ReplaceAll(v.what, "\n", " ")))
		}
	})
	seen.list(t)
	if raced {
		return
	}
	if *update && !t.Failed() {
		found.writeTo(t, familyFile)
		return
	}
	known.mustAllBeIn(t, found)
	t.Logf("%d cells", seen.cells)
}

// familyClasses are the failures of branches that are known: what no plugin of GORM's can see.
var familyClasses = []struct {
	name  string
	holds func(k *kinship, rule string) bool
}{
	// docs/version-limits.md: GORM creates the row and saves its parent in two statements, and begins no transaction for both.
	{"outside of a transaction Append of a map leaves what it created if its parent is refused", func(k *kinship, rule string) bool {
		return k.branch.name == "Append a map" && rule == "error but stored" && !k.scope.inside
	}},
	// docs/faults.md: GORM empties the struct after a statement about others.
	{"a struct that Delete emptied, and no statement before showed, is stored empty by the next attempt", func(k *kinship, rule string) bool {
		return k.branch.name == "Delete the customer" && rule == "inserted again" && k.scope.again
	}},
}

func (k *kinship) classOf(rule string) string {
	for _, one := range familyClasses {
		if one.holds(k, rule) {
			return one.name
		}
	}
	return ""
}

// told is the cell as a program, and what was wrong.
func (k *kinship) told() string {
	lines := []string{strings.ReplaceAll(k.scope.code, "STATEMENT", "{ "+k.branch.code+" }")}
	for _, v := range k.found {
		lines = append(lines, "// "+v.rule+": "+strings.ReplaceAll(v.what, "\n", " "))
	}
	return strings.Join(lines, "\n\t")
}
