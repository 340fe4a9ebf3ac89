package memory

import (
	"cmp"
	"reflect"
	"slices"
)

// A rollback asks whether a version existed before the writes that are undone, or may have been made by them. In the second case, structs with it
// must not be written. Nobody knows what a bulk write, a trigger or SQL of the program has made. So a version is only known to be older if a struct
// with it was met before.

// span is the time from the first undone write to the rollback.
type span struct{ from, to int64 }

// stateOfRow is a row at a version.
type stateOfRow struct {
	rowOf

	table int // the index of its table among the tables of the type
	n, at int64
	null  bool
}

func (p *Places) stateOf(of reflect.Type, in Table, is held) stateOfRow {
	table := slices.IndexFunc(p.tables[of], func(one Table) bool { return in.like(one) == oneTable })
	state := stateOfRow{rowOf: rowOf{of, is.key}, table: table, n: is.version.N, null: is.version.Null}
	if at := is.version.At; at != nil {
		state.n, state.at = int64(at.Nanosecond()), at.Unix()
	}
	return state
}

// meet notes that a statement met a row at a version, in a struct.
func (p *Places) meet(at reflect.Value, in Table, is held, moment int64) {
	if p.isVoid(moment) {
		return
	}
	state := p.stateOf(at.Type(), in, is)
	p.note(p.met, state, moment)
	if one := p.place(at); one != nil {
		if one.had == nil {
			one.had = map[stateOfRow]int64{}
		}
		p.note(one.had, state, moment)
	}
}

func (p *Places) note(first map[stateOfRow]int64, state stateOfRow, moment int64) {
	if known, has := first[state]; !has || moment < known || p.isVoid(known) {
		first[state] = moment
	}
}

// isVoid reports whether what a statement met at a moment may have been undone.
func (p *Places) isVoid(at int64) bool {
	i, _ := slices.BinarySearchFunc(p.void, at, func(s span, at int64) int { return cmp.Compare(s.to, at) })
	return i < len(p.void) && p.void[i].from <= at
}

// predates reports whether a struct had this row at this version before the first of the undone writes. Then none of these has made the version.
func (p *Places) predates(of reflect.Type, in Table, is held) bool {
	if p == nil {
		return false
	}
	at, has := p.met[p.stateOf(of, in, is)]
	return has && at < p.wrote && !p.isVoid(at)
}

// lose makes a version of a row unread in all places, if the undone writes may have made it, and it is not known which version was there before.
func (p *Places) lose(of reflect.Type, in Table, is held) {
	if p == nil {
		return
	}
	state := p.stateOf(of, in, is)
	if p.lost[state] {
		return // it is for another struct
	}
	made, left := p.left[state]
	if p.lost[state] = true; made || p.predates(of, in, is) {
		return
	}
	for _, one := range p.by[rowOf{of, is.key.spelling()}] {
		if at, had := one.had[state]; one.part || had && at < p.read[state.spelling()] && !p.isVoid(at) || left && !one.hadAny(p.read[state.spelling()]) {
			continue
		}
		now := heldIn(one.model, one.row)
		if version := one.model.Column; (now.is(is) || now.respells(is) && !p.predates(of, in, now)) && !one.isTakenBack(in) && (one.isMoved() || in.among(one.tables) != twoTables && !p.isOld(one)) {
			version.Write(one.row, version.Unread())
		}
	}
}

// wasReread reports whether the state in which the statement left the row was read again. Then a place with that state may come from the read. Its
// columns are the row's, while the struct's may be what the program assigned before.
func (s *Structs) wasReread(i int) bool {
	p := s.Places
	return !s.Created && !p.copied[s.left(i)] && p.reread[p.stateOf(s.Type(), s.In, heldIn(s.model, s.Of(s.After, i)))]
}

// wasReadInto reports whether the last statement that had a struct in a place was a query.
func (p *place) wasReadInto() bool {
	if p == nil || len(p.keepers) == 0 {
		return false
	}
	last := p.last()
	return last.noted != nil && last.noted.read
}

// hadAny reports whether a place had a struct before a moment.
func (p *place) hadAny(before int64) bool {
	for _, at := range p.had {
		if at < before {
			return true
		}
	}
	return false
}

// isOld reports whether the content of a place predates the undone writes, whichever of its tables it belongs to.
func (p *Places) isOld(one *place) bool {
	is := heldIn(one.model, one.row)
	return !slices.ContainsFunc(one.tables, func(in Table) bool { return !p.predates(one.row.Type(), in, is) })
}

// isTakenBack reports whether a place still has what a statement wrote there, and that statement will restore its version. The program may have
// changed other columns since, if nothing was read there.
func (p *place) isTakenBack(in Table) bool {
	for _, by := range slices.Backward(p.keepers) {
		if by.of == nil || by.of.undone || by.of.versionStayed(by.i) {
			continue
		}
		if by.of.isAs(by.of.After, p.row, by.i) || in.among(p.tables) == oneTable && !p.wasReadInto() && by.of.keptIn(p.row, by.of.After, by.i) {
			return true
		}
	}
	return false
}
