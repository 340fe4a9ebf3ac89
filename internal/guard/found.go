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

// Some facts are not in the server's answer, and are found out in another way: that an update found a row and left it
// unchanged, and what a row holds after an UPDATE that returns nothing.

// marksFound makes an update report that it found its row: MariaDB and MySQL count only rows that change.
func (w *Write) marksFound(stmt *gorm.Statement) bool {
	if !dialect.Of(stmt.DB).CountsChanged() || w.batch || len(w.rows) != 1 || w.version.is() && w.built.bumps {
		return false
	}
	return w.version.checked || w.intent.columns() != nil || w.where.mustWrite || w.fence.guards()
}

// markFound assigns the key to itself. While the server does this, it stores a number for each row that it finds.
func (b builder) markFound(written bool) {
	if written {
		b.Text(",")
	}
	key := b.w.model.Schema.PrimaryFields[0].DBName
	column := b.Quote(key)
	b.Text(column, "=IF(LAST_INSERT_ID(", column, " IS NOT NULL)=1,", column, ",", column, ")")
	b.w.built.marked = true
	if b.Result == nil {
		gorm.WithResult().ModifyStatement(b.Statement)
		b.w.built.asked = true
	}
}

// observe finds out what the answer to an update or a delete left out.
func (w *Write) observe(db *gorm.DB) {
	if db.Error != nil || db.DryRun || !w.built.any || w.built.nothing {
		return
	}
	if result := db.Statement.Result; w.built.marked && db.RowsAffected == 0 && result != nil && result.Result != nil {
		if id, err := result.Result.LastInsertId(); err == nil && id == 1 {
			db.RowsAffected = 1
		}
	}
	if err := w.findUnchanged(db); err != nil {
		fault.Add(db, fmt.Errorf("gormlock: %s: whether all rows of the slice were found: %w", statement.TableName(db.Statement), err))
	}
	if w.built.asked {
		db.Statement.Result = nil // otherwise other statements would share it
	}
	if err := w.readBack(db); err != nil {
		fault.Add(db, fmt.Errorf("gormlock: %s: it was written, and could not be read again: %w", statement.TableName(db.Statement), err))
	}
}

// findUnchanged counts the unchanged rows of a slice whose versions do not move, if the server has counted fewer rows
// than there are structs. An unchanged row is at the expected version, and a row never returns to an old version.
func (w *Write) findUnchanged(db *gorm.DB) error {
	if !dialect.Of(db).CountsChanged() || !w.batch || !w.version.checked || w.version.choice != nil || w.built.bumps || w.where.filtered ||
		!updates(db.Statement) || int(db.RowsAffected) >= w.distinct() || statement.Transaction(db.Statement) == nil {
		return nil
	}
	keys := make([][]any, len(w.rows))
	for i := range w.rows {
		keys[i] = w.rows[i].Key
	}
	found, err := w.look(db, keys)
	if err != nil {
		return err
	}
	for i := range w.rows {
		if !found[i].isLive() || !w.version.Read(found[i].Value).Equal(w.rows[i].Expected) {
			return nil // that is a conflict, which the count shows
		}
	}
	db.RowsAffected = int64(w.distinct())
	return nil
}

// readsBack reports whether the written rows can be read again after the statement: they are locked until its transaction
// ends.
func (w *Write) readsBack(stmt *gorm.Statement) bool {
	return !dialect.Of(stmt.DB).UpdateReturns() && updates(stmt) && statement.Transaction(stmt) != nil
}

// readBack reads the columns that memory needs where the statement could not return them.
func (w *Write) readBack(db *gorm.DB) error {
	r := w.returning
	fewer := int(db.RowsAffected) < w.distinct()
	if !r.wanted() || !r.back || db.RowsAffected == 0 || len(w.rows) == 0 || fewer && (!w.version.checked || !w.built.bumps) {
		return nil
	}
	keys := make([][]any, 0, len(w.rows))
	for i := range w.rows {
		if row := w.named(db.Statement, &w.rows[i]); row.Key != nil {
			keys = append(keys, row.Key)
		}
	}
	return w.readInto(db, keys, func(found []reflect.Value) []reflect.Value {
		if fewer {
			return w.written(db, found)
		}
		return found
	})
}

// readInto reads the rows of these keys, as if the statement had returned those that are chosen among them; nil: none.
func (w *Write) readInto(db *gorm.DB, keys [][]any, chosen func([]reflect.Value) []reflect.Value) error {
	r := w.returning
	fields := append(append([]*schema.Field(nil), w.model.Schema.PrimaryFields...), r.fields...)
	if w.version.is() {
		fields = append(fields, w.version.Field)
	}
	if w.upsert != nil { // an upsert compares its structs with their rows
		fields = w.model.Readable()
	}
	names := make([]string, 0, len(fields))
	for _, field := range fields {
		names = append(names, field.DBName)
	}
	found, err := w.lookWhere(db, names, func(q *gorm.DB) *gorm.DB { return q.Unscoped().Where(KeyIn(w.model.Schema, keys)) })
	if err != nil {
		return err
	}
	if found = chosen(found); found == nil && len(keys) > 0 {
		return nil
	}
	r.rows = reflect.MakeSlice(reflect.SliceOf(w.model.Schema.ModelType), 0, len(found))
	for _, row := range found {
		r.rows = reflect.Append(r.rows, row)
	}
	return nil
}

// written returns the rows of a slice that the statement wrote, if it did not write all of them. They are those at the
// version that the statement gives. If the server counted another number of rows, a rival has given that version to some of
// them, and written returns nil.
func (w *Write) written(db *gorm.DB, found []reflect.Value) []reflect.Value {
	next := map[string]column.Value{}
	for i := range w.rows {
		next[w.rows[i].name] = w.version.Stored(w.rows[i].next)
	}
	var ours []reflect.Value
	for _, row := range found {
		key, _ := statement.KeyOf(db.Statement, w.model.Schema, row)
		if version, named := next[statement.KeyName(key)]; !named || w.version.Read(row).Equal(version) {
			ours = append(ours, row)
		}
	}
	if len(ours) != int(db.RowsAffected) {
		return nil
	}
	return ours
}

// distinct is how many rows the statement is about.
func (w *Write) distinct() int {
	n := 0
	for i := range w.rows {
		if !w.rows[i].twin {
			n++
		}
	}
	return n
}
