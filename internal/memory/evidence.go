package memory

import (
	"cmp"
	"reflect"
	"slices"
)

// A rollback asks of a version whether it was there before the writes that are taken back, or may have been made by them: then whoever has it
// must not write with it. Nobody knows what a bulk write, a trigger or SQL of the program has made. So only a struct that was met before tells that
// a version is older.

// span is from the first write of what was taken back to the moment when it was.
type span struct{ from, to int64 }

// stateOfRow is a row at a version.
type stateOfRow struct {
	rowOf

	table int // which of those of the type
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

// isVoid reports whether what a statement met at a moment may have been taken back.
func (p *Places) isVoid(at int64) bool {
	i, _ := slices.BinarySearchFunc(p.void, at, func(s span, at int64) int { return cmp.Compare(s.to, at) })
	return i < len(p.void) && p.void[i].from <= at
}

// predates reports whether a struct had this row at this version before the first of the writes that are taken back. Then none of these has made
// the version.
func (p *Places) predates(of reflect.Type, in Table, is held) bool {
	if p == nil {
		return false
	}
	at, has := p.met[p.stateOf(of, in, is)]
	return has && at < p.wrote && !p.isVoid(at)
}

// lose makes a version of a row unread in all places, if what is taken back may have made it, and nothing tells which version was before.
func (p *Places) lose(of reflect.Type, in Table, is held) {
	if p == nil {
		return
	}
	state := p.stateOf(of, in, is)
	if p.lost[state] {
		return // for another struct
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

// wasReread reports whether what the statement left in the row was read again. Then a place that has it may have what was read: its columns are
// those of the row, and the struct's may be what the program assigned before.
func (s *Structs) wasReread(i int) bool {
	p := s.Places
	return !s.Created && !p.copied[s.left(i)] && p.reread[p.stateOf(s.Type(), s.In, heldIn(s.model, s.Of(s.After, i)))]
}

// wasReadInto reports whether a query was the last that had a struct in a place.
func (p *place) wasReadInto() bool {
	if p == nil || len(p.keepers) == 0 {
		return false
	}
	last := p.last()
	return last.noted != nil && last.noted.read
}

// hadAny reports whether a place had anything before a moment.
func (p *place) hadAny(before int64) bool {
	for _, at := range p.had {
		if at < before {
			return true
		}
	}
	return false
}

// isOld reports whether what a place has predates what is taken back, whichever of its tables it is of.
func (p *Places) isOld(one *place) bool {
	is := heldIn(one.model, one.row)
	return !slices.ContainsFunc(one.tables, func(in Table) bool { return !p.predates(one.row.Type(), in, is) })
}

// isTakenBack reports whether a place has what a statement wrote there that takes its version back, and has not yet. Its program may have changed other
// columns since, if nothing was read there.
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
