package whereabouts

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

const copiedSetting = "gormlock:copied"

// NoticeCopies marks the save of an association whose children GORM copies: Association(…).Append and Replace of a relation that holds its structs
// by value. GORM has moved them to a new slice by now, whatever becomes of the statement, and it copies those that it was given back to the caller
// afterwards.
func NoticeCopies(db *gorm.DB) {
	stmt := db.Statement
	if stmt.Schema != nil && statement.Transaction(stmt) != nil && model.NeedsJournal(db, stmt.Schema) && !isMarked(stmt) && statement.InAssociation() {
		if relation := savedRelation(stmt); relation == nil || IsHeldByValue(relation) {
			stmt.Settings.Store(copiedSetting, stmt)
			keepCopies(stmt)
		}
	}
	refuseFailedAppend(db)
}

func isMarked(stmt *gorm.Statement) bool {
	_, marked := stmt.Settings.Load(copiedSetting)
	return marked
}

// keepCopies notes where the structs are now. What is out of sight is shown there too.
func keepCopies(stmt *gorm.Statement) {
	j := journal.Of(stmt)
	if j == nil || j.Written() == 0 {
		return
	}
	c := copiesIn(stmt)
	for _, h := range hiddenIn(stmt) {
		h.show()
		for i := range h.all {
			for _, one := range c.held {
				if one.model == h.all[i].model {
					h.all[i].showIn(one.place)
				}
			}
		}
	}
	j.Keep(c)
}

// AfterEnd looks, when a statement has ended, at what GORM may have left in the structs of an association, or is about to copy.
func AfterEnd(db *gorm.DB) {
	hideFromCopies(db)
	hideCopied(db.Statement)
	noteFailedAppend(db)
}

// hideCopied hides the versions of the children that an Append has stored, and which GORM is about to copy to the caller. With several parents it
// does so after their last statement.
func hideCopied(stmt *gorm.Statement) {
	marked, _ := stmt.Settings.Load(copiedSetting)
	j := journal.Of(stmt)
	if marked != any(stmt) || j == nil {
		return
	}
	h := &hidden{call: callOf(stmt)}
	first := firstStates(stmt)
	for _, one := range copiesIn(stmt).held {
		v, has := veilOf(one.model, one.place)
		if state, touched := first[rowOf{one.place.Type(), v.key}]; has && touched && state.differs(v) {
			v.seems = state.inSight(one.model)
			h.all = append(h.all, v)
		}
	}
	j.Has(func(step journal.Step) bool {
		if before, is := step.(*hidden); is && before.call == h.call {
			h.all = append(h.all, before.all...)
		}
		return false
	})
	if len(h.all) > 0 {
		h.hideUntilNext(stmt)
	}
}

// callOf tells the statements of one Append, which share the list of what they select, from others. Those that save all associations select
// nothing, and may be of one.
func callOf(stmt *gorm.Statement) *string {
	if len(stmt.Selects) == 0 {
		return &anyCall
	}
	return &stmt.Selects[0]
}

var anyCall string

// rowOf is a row, by its model and its key.
type rowOf struct {
	of  reflect.Type
	key string
}

// firstState is the version at which a transaction has met a row: none if it has read the row after it began to write, or has made it.
type firstState struct {
	version column.Value
	loaded  bool
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
	meet := func(m *model.Model, row, was reflect.Value) {
		if m == nil || m.Column == nil || !row.IsValid() {
			return
		}
		is := rowOf{m.Schema.ModelType, memory.KeyIn(m, row)}
		state := all[is]
		if state == nil {
			state = &firstState{version: m.Column.Unread()}
			if all[is] = state; was.IsValid() && m.Column.Loaded(m.Column.Read(was)) {
				state.version, state.loaded = m.Column.Read(was), true
			}
		}
		state.steps++
	}
	journal.Of(stmt).Has(func(step journal.Step) bool {
		switch step := step.(type) {
		case *owners:
		case Holder:
			s := step.Held()
			for i := range s.Count {
				meet(s.Model(), s.Of(s.After, i), s.Was(i))
			}
		case Reader:
			step.EachRow(func(m *model.Model, row reflect.Value) { meet(m, row, reflect.Value{}) })
		}
		return false
	})
	return all
}

// savedRelation returns the relation that Association(…).Append or Replace saves: GORM selects it first. It is nil if all
// relations are saved.
func savedRelation(stmt *gorm.Statement) *schema.Relationship {
	if len(stmt.Selects) == 0 {
		return nil
	}
	return stmt.Schema.Relationships.Relations[stmt.Selects[0]]
}

// IsHeldByValue reports whether the field of a relation holds structs, and not pointers to those of the caller.
func IsHeldByValue(relation *schema.Relationship) bool {
	held := relation.Field.IndirectFieldType
	if held.Kind() == reflect.Slice || held.Kind() == reflect.Array {
		return held.Elem().Kind() == reflect.Struct
	}
	return relation.Field.FieldType.Kind() == reflect.Struct
}

// IsCopied reports whether GORM copies a struct to the caller after the statement that saves it. A rollback does not reach the copy.
func IsCopied(stmt *gorm.Statement, row reflect.Value) (copied bool) {
	marked, _ := stmt.Settings.Load(copiedSetting)
	owner, _ := marked.(*gorm.Statement)
	if owner == nil || !row.CanAddr() {
		return false
	}
	at := row.Addr().Pointer()
	eachCopied(owner, func(_ *schema.Relationship, place reflect.Value) {
		from, size := place.Addr().Pointer(), place.Type().Size()
		if place.Kind() == reflect.Slice {
			from, size = place.Pointer(), place.Type().Elem().Size()*uintptr(place.Len())
		}
		copied = copied || at >= from && at < from+size
	})
	return copied
}

// eachCopied visits what the owner in an Append or a Replace holds by value and GORM copies.
func eachCopied(stmt *gorm.Statement, visit func(*schema.Relationship, reflect.Value)) {
	relations := []*schema.Relationship{savedRelation(stmt)}
	if relations[0] == nil {
		relations = statement.OwnRelations(stmt.Schema)
	}
	for _, relation := range relations {
		if !IsHeldByValue(relation) {
			continue
		}
		statement.EachStruct(stmt.ReflectValue, func(owner reflect.Value) {
			if place := reflect.Indirect(statement.Place(relation.Field, owner)); place.CanAddr() {
				visit(relation, place)
			}
		})
	}
}
