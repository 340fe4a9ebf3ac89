package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/reading"
	"github.com/gormlock/gormlock/internal/statement"
)

// A child with a key that was not read may be new, or stand for a row. If the returned row has the version of new rows, it can still be another's.
// Only a child that has all columns of its row, or that was inserted, gets the version.

// mirrorsRow reports whether a child has the columns of the returned row, as far as columns keep values exactly.
func (w *Write) mirrorsRow(stmt *gorm.Statement, from, child reflect.Value) bool {
	for _, field := range w.model.Schema.FieldsByDBName {
		if !field.Readable || !field.Updatable || field == w.version.Field || reading.SameIn(field, from, child) {
			continue
		}
		stored, _ := field.ValueOf(stmt.Context, from)
		held, _ := field.ValueOf(stmt.Context, child)
		if !statement.SameValue(stored, held, column.TickIn(stmt.DB, field)) {
			return false
		}
	}
	return true
}

// settleUnsure gives children the version of their rows if they do not mirror them, but the statement has inserted them: the server stores a date
// without its time, and a number at the scale of its column. It asks the server, which knows that nobody has updated or locked such a row.
func (w *Write) settleUnsure(db *gorm.DB, from []reflect.Value) error {
	stmt, v := db.Statement, &w.version
	unsure := map[string]int{}
	var keys [][]any
	for i := range w.rows {
		row, r := &w.rows[i], &w.upsert.rows[i]
		if !r.unsure || r.loaded || !v.is() || !from[i].IsValid() || !row.Struct.CanAddr() || !v.Unset(v.Read(row.Struct)) ||
			!v.Read(from[i]).Equal(v.Stored(row.next)) && !changesInserts(stmt) {
			continue
		}
		if key, _ := statement.KeyOf(stmt, w.model.Schema, from[i]); key != nil {
			keys = append(keys, key)
			unsure[statement.KeyName(key)] = i
		}
	}
	if len(keys) == 0 || !statement.IsPostgres(db) || statement.Transaction(stmt) == nil || !journal.HasXmin(stmt) {
		return nil
	}
	inserted, err := Rows(db, w.model, slices.Clone(w.model.Schema.PrimaryFieldDBNames), true, false,
		KeyIn(w.model.Schema, keys), isInserted)
	for _, row := range inserted {
		key, _ := statement.KeyOf(stmt, w.model.Schema, row)
		if i, is := unsure[statement.KeyName(key)]; is {
			v.Write(w.rows[i].Struct, v.Read(from[i]))
		}
	}
	return err
}
