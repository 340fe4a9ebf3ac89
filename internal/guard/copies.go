package guard

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

const (
	copiedSetting    = "gormlock:copied"
	committedSetting = "gormlock:copied_committed" // nothing was written in the transaction before
)

// NoticeCopies marks the save of an association whose children GORM copies back to the caller after the statement:
// Association(…).Append and Replace of a relation that holds its structs by value. A rollback after the copying does not
// reach the copies. A transaction that ends before the copying loses nothing.
func NoticeCopies(db *gorm.DB) {
	stmt := db.Statement
	refuseFailedAppend(db)
	if db.Error != nil || stmt.Schema == nil || db.DryRun || statement.Transaction(stmt) == nil || !model.NeedsJournal(db, stmt.Schema) {
		return
	}
	if _, marked := stmt.Settings.Load(copiedSetting); marked || !statement.InAssociation() {
		return
	}
	if relation := savedRelation(stmt); relation == nil || isHeldByValue(relation) {
		stmt.Settings.Store(copiedSetting, stmt)
		switch j := journal.Of(stmt); {
		case j == nil:
		case j.Written() == 0:
			stmt.Settings.Store(committedSetting, true)
		default:
			j.Keep(copiesIn(stmt))
		}
	}
}

// loseCopied keeps from the structs that GORM copies to the caller what a rollback would not reach there: they have the versions of before the
// statement, if these were committed, and otherwise none.
func (w *Write) loseCopied(stmt *gorm.Statement) {
	w.Lose()
	var touched *memory.Places
	if _, committed := stmt.Settings.Load(committedSetting); !committed {
		touched = w.touchedBefore(stmt)
	}
	for i := range w.memory.Count {
		row, was := w.memory.Row(i), w.memory.Was(i)
		if row.CanAddr() && was.IsValid() && w.version.Loaded(w.version.Read(was)) && !touched.Know(w.model, row) {
			w.version.Write(row, w.version.Read(was))
		}
	}
}

// touchedBefore are the structs that the transaction has written or read before this statement.
func (w *Write) touchedBefore(stmt *gorm.Statement) *memory.Places {
	places := memory.NewPlaces()
	journal.Of(stmt).Has(func(step journal.Step) bool {
		switch step := step.(type) {
		case *owners:
		case Holder:
			if step != Holder(w) {
				places.Add(step.Held())
			}
		case *readInTransaction:
			step.seeIn(places)
		}
		return false
	})
	return places
}

// savedRelation returns the relation that Association(…).Append or Replace saves: GORM selects it first. It is nil if all
// relations are saved.
func savedRelation(stmt *gorm.Statement) *schema.Relationship {
	if len(stmt.Selects) == 0 {
		return nil
	}
	return stmt.Schema.Relationships.Relations[stmt.Selects[0]]
}

// isHeldByValue reports whether the field of a relation holds structs, and not pointers to those of the caller.
func isHeldByValue(relation *schema.Relationship) bool {
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
		if !isHeldByValue(relation) {
			continue
		}
		statement.EachStruct(stmt.ReflectValue, func(owner reflect.Value) {
			if place := reflect.Indirect(statement.Place(relation.Field, owner)); place.CanAddr() {
				visit(relation, place)
			}
		})
	}
}

func differ(was, after column.Value) bool { return !was.Equal(after) }
