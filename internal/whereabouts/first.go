package whereabouts

import (
	"reflect"

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

// firstState is the version at which a transaction has met a row: none if it has read the row after it began to write, or has made it.
type firstState struct {
	version column.Value
	loaded  bool
	read    bool
	steps   int // how many have met it
}

// differs reports whether a struct has another version than one that was committed.
func (f *firstState) differs(v veil) bool { return !f.loaded || !v.is.Equal(f.version) }

// inSight is the version that a copy may have meanwhile.
func (f *firstState) inSight(m *model.Model) column.Value {
	if f.loaded && f.steps == 1 {
		return f.version
	}
	return m.Column.Unread()
}

// firstStates are those of the rows that the transaction has met. A version of before may stay in sight if one statement has moved it: behind
// several, other columns may be changed too.
func firstStates(stmt *gorm.Statement) map[rowOf]*firstState {
	all := map[rowOf]*firstState{}
	meet := func(m *model.Model, row, was reflect.Value) *firstState {
		if m == nil || m.Column == nil || !row.IsValid() {
			return nil
		}
		is := rowIn(m, row)
		state := all[is]
		if state == nil {
			state = &firstState{version: m.Column.Unread()}
			if all[is] = state; was.IsValid() && m.Column.Loaded(m.Column.Read(was)) {
				state.version, state.loaded = m.Column.Read(was), true
			}
		}
		state.steps++
		return state
	}
	journal.Of(stmt).Has(func(step journal.Step) bool {
		switch step := step.(type) {
		case *owners:
		case *copies:
			for _, one := range step.held {
				if is := rowIn(one.model, one.place); one.known && (all[is] == nil || all[is].read && !all[is].loaded) {
					all[is] = &firstState{version: one.committed, loaded: true}
				}
			}
		case Holder:
			s := step.Held()
			for i := range s.Count {
				meet(s.Model(), s.Of(s.After, i), s.Was(i))
			}
		case Reader:
			step.EachRow(func(m *model.Model, row reflect.Value) {
				if state := meet(m, row, reflect.Value{}); state != nil {
					state.read = true
				}
			})
		}
		return false
	})
	return all
}
