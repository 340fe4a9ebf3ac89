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

// isOnlyNoted reports whether of the columns that the last statement left in a place only the key and the version are known.
func (p *place) isOnlyNoted() bool { return len(p.keepers) == 0 || p.last().noted != nil }

// last is the last statement that had a struct in the place. There is one.
func (p *place) last() keeper {
	return slices.MaxFunc(p.keepers, func(a, b keeper) int { return cmp.Compare(a.at(), b.at()) })
}

// hasOwn reports whether a place has the key and version that s left in the struct of this number, but by its own: the row had that version
// before, or another statement left them there, or found them and is undone, or they were read. Where s compared no version, this can be.
// What tells the two apart are the other columns.
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
		case by.of.undone && by.of.keptAt > s.leftAt && !by.of.Guessed: // it compared the version with that of the row, which was what s left
		case by.of.undone:
			if mine, its := s.nearer(row, i, by.of.columns(by.of.before, by.i)); by.of.keptIn(row, by.of.before, by.i) && (mine > its || mine == its && s.isThere(i, false)) {
				return true // and what s left is still where s left it
			}
		case by.of.keptIn(row, by.of.After, by.i):
			if mine, its := s.nearer(row, i, by.of.columns(by.of.After, by.i)); mine > its || its == 0 {
				return true
			}
		}
	}
	return false
}

// mayBeAnother reports whether a place may have the key and the version that s left in the struct of this number, but be of another row: the
// transaction may have replaced the row, or its table. It is not if all columns are as s left them, or if s's own place has that no more: then it
// was moved, and the program has changed it.
func (p *place) mayBeAnother(s *Structs, i int) bool {
	return !s.isAsLeft(p.row, i) && s.isThere(i, true)
}

// isThere reports whether what s left in the struct of this number is still where s left it. Of a single place that is taken back nobody knows.
func (s *Structs) isThere(i int, unknown bool) bool {
	if s.Places.alone != nil {
		return unknown
	}
	return s.leftIn(s.Row(i), i)
}

// nearer counts the columns in which a place is as another statement had it, and those in which it is as s left the struct of this
// number, where the two differ. Without the columns of another one, it counts those that are not as s left them.
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

// isAs reports whether all columns of a place are those of the struct of this number among copies.
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

// columns are the columns of the struct of this number among copies, by their names.
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
