package whereabouts

import (
	"reflect"
	"slices"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
)

// rowOf is a row, by its model and its key.
type rowOf struct {
	of  reflect.Type
	key string
}

func rowIn(m *model.Model, row reflect.Value) rowOf {
	return rowOf{m.Schema.ModelType, memory.KeyIn(m, row)}
}

// firstState describes the first steps of a transaction that met a row: the versions that structs of the row had from before. It has none if the
// transaction has created the row, or read it after it began to write.
type firstState struct {
	versions []heldVersion
	read     bool
	step     int // the first step that met the row
	last     int
	steps    int // how many steps have met it
}

// heldVersion is the version that the struct at an address had.
type heldVersion struct {
	version column.Value
	at      uintptr
}

func (f *firstState) loaded() bool { return len(f.versions) > 0 }

// differs reports whether a struct has a version other than those that were committed.
func (f *firstState) differs(v column.Value) bool {
	return !slices.ContainsFunc(f.versions, func(held heldVersion) bool { return held.version.Equal(v) })
}

// inSight is the version that a copy may show while GORM copies: the version from before, if exactly one statement has moved it. After several
// statements, other columns may have changed too.
func (f *firstState) inSight(v *veil) column.Value {
	for _, held := range f.versions {
		if f.steps == 1 && held.at == v.row.Addr().Pointer() {
			return held.version
		}
	}
	return v.model.Column.Unread()
}

// firstStates are the first states of all rows that the transaction has met.
type firstStates map[rowOf]*firstState

func firstStatesOf(stmt *gorm.Statement) firstStates {
	all, n := firstStates{}, 0
	journal.Of(stmt).Has(func(step journal.Step) bool {
		n++
		switch step := step.(type) {
		case *owners:
		case *copies:
			all.meetCopies(n, step)
		case Holder:
			s := step.Held()
			for i := range s.Count {
				all.meet(n, s.Model(), s.Of(s.After, i), s.Was(i), s.Row(i))
			}
		case Reader:
			step.EachRow(func(m *model.Model, _ memory.Table, row reflect.Value) {
				if state := all.meet(n, m, row, reflect.Value{}, row); state != nil {
					state.read = true
				}
			})
		}
		return false
	})
	return all
}

// meet notes that a step has met a row, and how its struct was before that.
func (all firstStates) meet(step int, m *model.Model, row, was, place reflect.Value) *firstState {
	if m == nil || m.Column == nil || !row.IsValid() {
		return nil
	}
	is := rowIn(m, row)
	state := all[is]
	if state == nil {
		state = &firstState{step: step}
		all[is] = state
	}
	if state.last != step {
		state.last = step
		state.steps++
	}
	if isMade := was.IsValid() && memory.KeyIn(m, was) != memory.KeyIn(m, row); state.step == step && was.IsValid() && !isMade && m.Column.Loaded(m.Column.Read(was)) {
		held := heldVersion{version: m.Column.Read(was)}
		if place.IsValid() && place.CanAddr() {
			held.at = place.Addr().Pointer()
		}
		state.versions = append(state.versions, held)
	}
	return state
}

// meetCopies notes what is known about structs that GORM has copied: their versions from before the transaction.
func (all firstStates) meetCopies(step int, c *copies) {
	for _, one := range c.held {
		if !one.known {
			continue
		}
		is := rowIn(one.model, one.place)
		state := all[is]
		if state == nil {
			state = &firstState{step: step}
			all[is] = state
		}
		if state.step == step || state.read && !state.loaded() {
			state.versions = append(state.versions, heldVersion{one.committed, one.place.Addr().Pointer()})
		}
	}
}
