package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Undo implements journal.Step, as does Lose.
func (w *Write) Undo() { w.undo() }

// Lose makes the structs whose versions the statement moved count as not read, because their rows may not have these
// versions. The next write of such a struct is ErrVersionMissing.
func (w *Write) Lose() {
	v := &w.version
	if !v.is() {
		return
	}
	for i := range w.memory.Count {
		row := w.memory.Row(i)
		if !row.IsValid() || !row.CanAddr() {
			continue
		}
		was := w.memory.Was(i)
		stays := w.op != OpCreate && w.op != OpUpsert || w.upsert != nil && w.upsert.skips && was.IsValid() && v.Loaded(v.Read(was))
		if stays && was.IsValid() && v.Read(was).Equal(v.Read(row)) && !w.memory.Changed(i) {
			continue // it was read before, and the statement left it
		}
		v.Write(row, v.Unread())
	}
}

const copiedSetting = "gormlock:copied"

// NoticeCopies marks the save of an association whose children GORM copies back to the caller after the statement:
// Association(…).Append and Replace of a relation that holds its structs by value. A rollback after the copying does not
// reach the copies. A transaction that ends before the copying loses nothing.
func NoticeCopies(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil || db.DryRun || statement.Transaction(stmt) == nil || !model.NeedsJournal(db, stmt.Schema) {
		return
	}
	if _, marked := stmt.Settings.Load(copiedSetting); marked || !statement.InAssociation() {
		return
	}
	if relation := savedRelation(stmt); relation == nil || isHeldByValue(relation) {
		stmt.Settings.Store(copiedSetting, stmt.Schema)
	}
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

// IsCopied reports whether GORM copies this field of the statement to the caller after the statement. A rollback does not
// reach the copy.
func IsCopied(stmt *gorm.Statement, relation *schema.Relationship) bool {
	_, copied := stmt.Settings.Load(copiedSetting)
	return copied && isHeldByValue(relation)
}

// isCopied reports whether GORM will copy the structs of the statement.
func isCopied(stmt *gorm.Statement) bool {
	if !statement.IsAssociation(stmt) {
		return false
	}
	_, copied := stmt.Settings.Load(copiedSetting)
	return copied
}

func differ(was, after column.Value) bool { return !was.Equal(after) }

// wrote reports whether the statement left the row of this name in its structs, or returned it.
func (w *Write) wrote(stmt *gorm.Statement, name string) bool {
	is := func(row reflect.Value) bool {
		key, _ := statement.KeyOf(stmt, w.model.Schema, row)
		return key != nil && statement.KeyName(key) == name
	}
	for i := range w.memory.Count {
		row := w.memory.Of(w.memory.After, i)
		if !row.IsValid() {
			row = w.memory.Row(i)
		}
		if is(row) {
			return true
		}
	}
	return slices.ContainsFunc(w.returning.seen(), is)
}
