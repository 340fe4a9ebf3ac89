package guard

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// The server's answer lacks some facts, which are found out in another way: that an update found a row and left it unchanged, and what a row holds
// after an UPDATE that returns nothing.

// markFound assigns the key to itself. While the server does this, it stores a number for each row that it finds.
func (b builder) markFound(written bool) {
	if written {
		b.Text(",")
	}
	key := b.draft.model.Schema.PrimaryFields[0].DBName
	column := b.Quote(key)
	b.Text(column, "=IF(LAST_INSERT_ID(", column, " IS NOT NULL)=1,", column, ",", column, ")")
	b.draft.built.marked = true
	if b.Result == nil {
		gorm.WithResult().ModifyStatement(b.Statement)
		b.draft.built.asked = true
	}
}

// observe finds out what the answer to an update or a delete lacks.
func (a *answer) observe(db *gorm.DB) {
	if db.Error != nil || db.DryRun || !a.built.any || a.built.nothing {
		return
	}
	if result := db.Statement.Result; a.built.marked && db.RowsAffected == 0 && result != nil && result.Result != nil {
		if id, err := result.Result.LastInsertId(); err == nil && id == 1 {
			db.RowsAffected = 1
		}
	}
	if err := a.findUnchanged(db); err != nil {
		fault.Add(db, fmt.Errorf("gormlock: %s: whether all rows of the slice were found: %w", statement.TableName(db.Statement), err))
	}
	if a.built.asked {
		db.Statement.Result = nil // otherwise other statements would share it
	}
	if err := a.readBack(db); err != nil {
		fault.Add(db, fmt.Errorf("gormlock: %s: it was written, and could not be read again: %w", statement.TableName(db.Statement), err))
	}
}

// findUnchanged counts the unchanged rows of a slice whose versions do not move, if the server has counted fewer rows than there are structs. An
// unchanged row is at the expected version, and a row never returns to an old version.
func (a *answer) findUnchanged(db *gorm.DB) error {
	if !dialect.Of(db).CountsChanged() || !a.batch || !a.version.checked || a.version.choice != nil || a.built.bumps || a.where.filtered ||
		!updates(db.Statement) || int(db.RowsAffected) >= a.distinct() || statement.Transaction(db.Statement) == nil {
		return nil
	}
	keys := make([][]any, len(a.rows))
	for i := range a.rows {
		keys[i] = a.rows[i].Key
	}
	found, err := a.look(db, keys)
	if err != nil {
		return err
	}
	for i := range a.rows {
		if !found[i].isLive() || !a.version.accepts(&a.rows[i], a.version.Read(found[i].Value)) {
			return nil // that is a conflict, as the count shows
		}
	}
	db.RowsAffected = int64(a.distinct())
	return nil
}

// readBack reads the columns that memory needs if the statement could not return them.
func (a *answer) readBack(db *gorm.DB) error {
	r := a.returning
	fewer := int(db.RowsAffected) < a.distinct()
	if !r.wanted() || !r.back || db.RowsAffected == 0 || len(a.rows) == 0 || fewer && (!a.version.checked || !a.built.bumps) {
		return nil
	}
	keys := make([][]any, 0, len(a.rows))
	for i := range a.rows {
		if row := a.named(db.Statement, &a.rows[i]); row.Key != nil {
			keys = append(keys, row.Key)
		}
	}
	return a.readInto(db, keys, func(found []reflect.Value) []reflect.Value {
		if fewer {
			return a.written(db, found)
		}
		return found
	})
}

// readInto reads the rows of these keys, as if the statement had returned those that chosen selects; nil selects none.
func (a *answer) readInto(db *gorm.DB, keys [][]any, chosen func([]reflect.Value) []reflect.Value) error {
	r := a.returning
	fields := append(append([]*schema.Field(nil), a.model.Schema.PrimaryFields...), r.fields...)
	if a.version.is() {
		fields = append(fields, a.version.Field)
	}
	if a.upsert != nil { // an upsert compares its structs with their rows
		fields = readable(db.Statement, a.model)
	}
	names := make([]string, 0, len(fields))
	for _, field := range fields {
		names = append(names, field.DBName)
	}
	found, err := a.lookWhere(db, names, func(q *gorm.DB) *gorm.DB { return q.Unscoped().Where(KeyIn(a.model.Schema, keys)) })
	if err != nil {
		return err
	}
	if found = chosen(found); found == nil && len(keys) > 0 {
		return nil
	}
	r.rows = reflect.MakeSlice(reflect.SliceOf(a.model.Schema.ModelType), 0, len(found))
	for _, row := range found {
		r.rows = reflect.Append(r.rows, row)
	}
	return nil
}

// written returns the rows of a slice that the statement wrote, if it did not write all of them. They are at the version that the statement gives.
// If the server counted another number of rows, a rival has given that version to some of them, and written returns nil.
func (a *answer) written(db *gorm.DB, found []reflect.Value) []reflect.Value {
	next := map[string]column.Value{}
	for i := range a.rows {
		next[a.rows[i].name] = a.version.Stored(a.rows[i].next)
	}
	var ours []reflect.Value
	for _, row := range found {
		key, _ := statement.KeyOf(db.Statement, a.model.Schema, row)
		if version, named := next[statement.KeyName(key)]; !named || a.version.Read(row).Equal(version) {
			ours = append(ours, row)
		}
	}
	if len(ours) != int(db.RowsAffected) {
		return nil
	}
	return ours
}
