package invariants

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

var forms = slices.Concat(savers, updaters, expecters, ignorers, deleters, upserters, readers, mergers, matchers, conditionals)

// spelled is a model, and whether the program spells its keys in its own way.
type spelled struct {
	*shape
	foreign bool
}

func spellings() []spelled {
	var all []spelled
	for _, s := range shapes {
		all = append(all, spelled{s, false})
		if s.foreign {
			all = append(all, spelled{s, true})
		}
	}
	return all
}

// parts are the indices of a cell's parts: form, shape, state, scope, configuration.
type parts [5]int

func sizes() parts {
	return parts{len(forms), len(spellings()), len(states), len(scopes), len(configurations)}
}

func (p parts) cell() *cell {
	s := spellings()[p[1]]
	return &cell{form: &forms[p[0]], shape: s.shape, foreign: s.foreign, state: &states[p[2]], scope: &scopes[p[3]], config: configurations[p[4]].name}
}

// drawn are parts at random that fit, given some of them; ok is false where none was found.
func drawn(r *rand.Rand, given map[int]int) (p parts, ok bool) {
	limit := sizes()
	for range 200 {
		for i := range p {
			value, fixed := given[i]
			if !fixed {
				value = r.IntN(limit[i])
			}
			p[i] = value
		}
		if p.cell().makesSense() {
			return p, true
		}
	}
	return p, false
}

// pair is two parts of a cell.
type pair struct{ i, a, j, b int }

func (p parts) pairs() []pair {
	var all []pair
	for i := range p {
		for j := i + 1; j < len(p); j++ {
			all = append(all, pair{i, p[i], j, p[j]})
		}
	}
	return all
}

// covering is a set of cells in which each two parts that fit meet. It is the same each time.
func covering() []parts {
	r := rand.New(rand.NewPCG(1, 2))
	covered := map[pair]bool{}
	var all []parts
	limit := sizes()
	for i := range limit {
		for j := i + 1; j < len(limit); j++ {
			for a := range limit[i] {
				for b := range limit[j] {
					if covered[pair{i, a, j, b}] {
						continue
					}
					if best, ok := bestOf(r, covered, map[int]int{i: a, j: b}); ok {
						all = append(all, best)
						for _, one := range best.pairs() {
							covered[one] = true
						}
					}
				}
			}
		}
	}
	return all
}

// bestOf is the one of some candidates that has most pairs that are not covered yet.
func bestOf(r *rand.Rand, covered map[pair]bool, given map[int]int) (best parts, found bool) {
	most := -1
	for range 25 {
		candidate, ok := drawn(r, given)
		if !ok {
			return best, found
		}
		n := 0
		for _, one := range candidate.pairs() {
			if !covered[one] {
				n++
			}
		}
		if n > most {
			best, most, found = candidate, n, true
		}
	}
	return best, found
}

func (p parts) String() string { return fmt.Sprint(p.cell().name()) }

// base is the cells of every run: the covering, and each statement in each state and in each transaction.
func base() []parts {
	all := covering()
	seen := map[parts]bool{}
	for _, p := range all {
		seen[p] = true
	}
	r := rand.New(rand.NewPCG(3, 4))
	add := func(given map[int]int) {
		if p, ok := drawn(r, given); ok && !seen[p] {
			seen[p] = true
			all = append(all, p)
		}
	}
	for _, one := range pinned {
		add(one.given())
	}
	for form := range forms {
		committed := 0 // implicit
		if forms[form].inside {
			committed = 2 // Transaction
		}
		for state := range states {
			add(map[int]int{0: form, 2: state, 3: committed, 4: 0})
		}
		for scope := range scopes {
			add(map[int]int{0: form, 2: 0, 3: scope, 4: 0})
		}
	}
	return all
}

// pin names a cell: form, shape, state, scope, configuration.
type pin [5]string

// pinned are cells that samples have found, and that the base does not have of itself.
var pinned = []pin{
	{"Delete, by Model", "Hooked", "fresh", "implicit", "default"},
	{"ExpectVersion, Save", "Xmin", "gone", "implicit", "default"},
	{"Save of the other and this", "Plain", "unread", "Begin and Commit, error dropped", "default"},
	{"Update of pointers", "Plain", "unread", "gormlock.Transaction, error dropped", "default"},
	{"IgnoreVersion, Update of a slice", "Hooked", "soft-deleted", "implicit", "default"},
	{"Select, version alone", "Hooked", "unread", "gormlock.Transaction, error dropped", "PrepareStmt"},
	{"Select, version alone", "Hooked", "unread", "implicit", "default"},
	{"Save of two", "RailsPair", "recreated", "implicit", "SkipDefaultTransaction"},
	{"upsert in batches", "Text", "stale", "implicit", "SkipDefaultTransaction"},
	{"upsert, DO NOTHING, and a new one", "Plain", "gone", "implicit", "default"},
	{"upsert, DO NOTHING, and a new one", "Timed", "gone", "implicit", "default"},
}

func (p pin) given() map[int]int {
	return map[int]int{
		0: slices.IndexFunc(forms, func(f form) bool { return f.name == p[0] }),
		1: slices.IndexFunc(spellings(), func(s spelled) bool { return s.name == p[1] }),
		2: slices.IndexFunc(states, func(s state) bool { return s.name == p[2] }),
		3: slices.IndexFunc(scopes, func(s scope) bool { return s.name == p[3] }),
		4: slices.IndexFunc(configurations, func(c configuration) bool { return c.name == p[4] }),
	}
}
