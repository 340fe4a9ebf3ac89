package memory

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/gormlock/gormlock/internal/statement"
)

func (p *Places) own(row reflect.Value, by keeper) {
	if one := p.place(row); one != nil {
		one.keepers = append(one.keepers, by)
	}
}

// isOnlyNoted reports whether only the key and the version are known of the columns that the last statement left in a place.
func (p *place) isOnlyNoted() bool { return len(p.keepers) == 0 || p.last().noted != nil }

// last is the last statement that had a struct in the place. There must be one.
func (p *place) last() keeper {
	return slices.MaxFunc(p.keepers, func(a, b keeper) int { return cmp.Compare(a.at(), b.at()) })
}

// hasOwn reports whether a place has the key and version that s left in the struct of this number, but not from s. The row had that version before;
// or another statement left it there, or found it and is undone; or it was read. That is possible if s compared no version. The other columns
// decide.
func (p *place) hasOwn(s *Structs, i int) bool {
	row := p.row
	if s.Places.predates(s.Type(), s.In, heldIn(s.model, row)) {
		return !s.isAsLeft(row, i) || !p.isMoved() && (!p.isOnlyNoted() || s.Places.alone == nil && s.isAsLeft(s.Row(i), i))
	}
	for _, by := range p.keepers {
		switch {
		case by.noted != nil:
			if mine, _ := s.nearer(row, i, nil); mine > 0 && s.isThere(i, false) {
				return true
			}
		case by.of.undone && by.of.keptAt > s.leftAt && !by.of.Guessed: // it compared the version with the row's, and that was the version that s left
		case by.of.undone:
			if mine, its := s.nearer(row, i, by.of.columns(by.of.before, by.i)); by.of.keptIn(row, by.of.before, by.i) && (mine > its || mine == its && s.isThere(i, false)) {
				return true // and the place where s left it still has it
			}
		case by.of.keptIn(row, by.of.After, by.i):
			if mine, its := s.nearer(row, i, by.of.columns(by.of.After, by.i)); mine > its || its == 0 {
				return true
			}
		}
	}
	return false
}

// mayBeAnother reports whether a place with the key and the version that s left in the struct of this number may belong to another row: the
// transaction may have replaced the row, or its table. It does not if all columns are as s left them, or if s's own place no longer has that state:
// then the struct was moved, and the program has changed it.
func (p *place) mayBeAnother(s *Structs, i int) bool {
	return !s.isAsLeft(p.row, i) && s.isThere(i, true)
}

// isThere reports whether the place where s left the struct of this number still has what s left. If only a single place is undone, that is not
// known, and the result is unknown.
func (s *Structs) isThere(i int, unknown bool) bool {
	if s.Places.alone != nil {
		return unknown
	}
	return s.leftIn(s.Row(i), i)
}

// nearer compares a place with what s left in the struct of this number and with what another statement had there. In the columns in which the two
// differ, it counts how often the place equals each. If the columns of the other one are not known, it counts the columns that are not as s left
// them.
func (s *Structs) nearer(row reflect.Value, i int, others map[string]pointee) (mine, its int) {
	now := s.columns(nil, i)
	for _, field := range s.model.Schema.FieldsByDBName {
		now[field.DBName] = state(field, row)
	}
	for name, left := range s.columns(s.After, i) {
		other, known := others[name]
		switch {
		case others == nil && !holds(now[name], left):
			mine++
		case !known, holds(other, left):
		case holds(now[name], other):
			mine++
		case holds(now[name], left):
			its++
		}
	}
	return mine, its
}

// isAs reports whether all columns of a place equal those of the struct of this number among copies.
func (s *Structs) isAs(copies *structCopies, row reflect.Value, i int) bool {
	for n, field := range s.model.Indirect {
		if !holds(state(field, row), copies.behind[i][n]) {
			return false
		}
	}
	of := s.Of(copies, i)
	for _, field := range s.model.Schema.FieldsByDBName {
		if field.FieldType.Kind() == reflect.Pointer || statement.ThroughPointer(field) {
			continue
		}
		if !holds(state(field, row), pointee{value: statement.Place(field, of).Interface()}) {
			return false
		}
	}
	return true
}

// columns are the columns of the struct of this number among copies, by name.
func (s *Structs) columns(copies *structCopies, i int) map[string]pointee {
	all := make(map[string]pointee, len(s.model.Schema.FieldsByDBName))
	if copies == nil {
		return all
	}
	row := s.Of(copies, i)
	for name, field := range s.model.Schema.FieldsByDBName {
		all[name] = state(field, row)
	}
	for n, field := range s.model.Indirect {
		all[field.DBName] = copies.behind[i][n]
	}
	return all
}

// keptIn reports whether a place has the key and the version of the struct of this number among copies.
func (s *Structs) keptIn(row reflect.Value, copies *structCopies, i int) bool {
	was, version := s.Of(copies, i), s.model.Column
	return was.IsValid() && KeyOf(s.model.Schema, row) == KeyOf(s.model.Schema, was) && (version == nil || version.Read(row).Equal(version.Read(was)))
}
