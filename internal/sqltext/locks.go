package sqltext

import "slices"

// foundIn is what the locking clause does to an item of FROM.
func (r locking) foundIn(i item) found {
	switch {
	case i.query == nil:
		for _, joined := range i.joined {
			i.found = i.and(r.foundIn(joined))
		}
		for _, given := range i.queries {
			f := r.foundIn(given)
			i.settled = append(slices.Clip(i.settled), f.settled...)
			if len(f.relations) > 0 || !f.isLocked() {
				i.given = given.names[0]
			}
		}
		return i.found
	case i.query.name != "":
		return r.ofWith(i.query)
	}
	f := r.bodyOf(i.query)
	switch {
	case r.locks(i.query.at, i.query.end):
		return f.settle()
	case r.asked.Descends || len(f.relations) == 0:
		return f
	}
	passed := found{settled: f.settled, functions: f.functions, alone: f.alone, with: f.with, subQuery: "(…)"}
	if len(i.names) > 0 {
		passed.subQuery = i.names[0]
	}
	return passed
}

// ofWith is what the locking clause does to a WITH query: nothing, unless the WITH query locks its rows itself.
func (r locking) ofWith(w *withQuery) found {
	if w.read {
		return w.found
	}
	w.read = true // set first: a recursive query reads itself
	switch f := r.bodyOf(w); {
	case r.locks(w.at, w.end):
		w.found = f.settle()
	case len(f.relations) > 0:
		w.found = found{settled: f.settled, functions: f.functions, with: w.name}
	default:
		w.found = f
	}
	return w.found
}

func (r locking) bodyOf(w *withQuery) found {
	if w.writes {
		return found{with: w.name}
	}
	return r.query(w.at, w.end, w.knows, nil)
}

// locks reports whether a query locks everything that it reads, at least as strongly as asked.
func (r locking) locks(at, end int) bool {
	at = r.find(at, end, func(at int) bool { return r.is(at, "for") || r.is(at, "lock") && r.is(at+1, "in") })
	if at == end {
		return false
	}
	strength, behind := 0, at+2
	switch {
	case r.is(at, "lock"):
		strength, behind = 3, at+4 // LOCK IN SHARE MODE
	case r.is(at+1, "update"):
		strength = 1
	case r.is(at+1, "no") && r.is(at+2, "key") && r.is(at+3, "update"):
		strength, behind = 2, at+4
	case r.is(at+1, "share"):
		strength = 3
	case r.is(at+1, "key") && r.is(at+2, "share"):
		strength, behind = 4, at+3
	}
	return strength > 0 && strength <= r.asked.Strength && !r.is(behind, "of")
}
