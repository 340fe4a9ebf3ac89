package whereabouts

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

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
	if relation := savedRelation(stmt); relation == nil || IsHeldByValue(relation) {
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

// AfterEnd looks, when a statement has ended, at what GORM may have left in the structs of an association, or is about to copy.
func AfterEnd(db *gorm.DB) {
	hideFromCopies(db)
	noteFailedAppend(db)
}

// TouchedBefore are the structs that the transaction has written or read before this statement, whose step is now. It is nil if there are none.
func TouchedBefore(stmt *gorm.Statement, now Holder) *memory.Places {
	if _, committed := stmt.Settings.Load(committedSetting); committed {
		return nil
	}
	places := memory.NewPlaces()
	journal.Of(stmt).Has(func(step journal.Step) bool {
		switch step := step.(type) {
		case *owners:
		case Holder:
			if step != now {
				places.Add(step.Held())
			}
		case Reader:
			step.EachRow(places.AddRead)
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
