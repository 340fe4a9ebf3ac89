package guard

import (
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// keepInserted drops the rows that an upsert found and skipped: MariaDB returns them too. The row of a loaded struct was inserted if it has the
// version that the struct proposed, which only an INSERT can store. The row of any other struct was inserted if it also equals the struct.
// Otherwise the struct gets the row's key, with which GORM refers to it, and counts as not read.
func (a *answer) keepInserted(db *gorm.DB, from []reflect.Value) {
	v := &a.version
	for i, row := range from {
		if !row.IsValid() || v.Read(row).Equal(v.Stored(a.rows[i].next)) && (a.upsert.rows[i].loaded || a.isRow(db, i, row)) {
			continue
		}
		from[i] = reflect.Value{}
		if to := a.rows[i].Struct; !a.upsert.rows[i].loaded && to.CanAddr() {
			a.upsert.rows[i].found = row
		}
	}
}

// isRow reports whether the struct equals its row, except for values that the server has filled in.
func (a *answer) isRow(db *gorm.DB, i int, row reflect.Value) bool {
	for _, field := range a.model.Readable() {
		if !field.Creatable || field == a.version.Field {
			continue
		}
		mine, zero := field.ValueOf(db.Statement.Context, a.rows[i].Struct)
		if zero && (field.HasDefaultValue || field.AutoIncrement) {
			continue
		}
		theirs, _ := field.ValueOf(db.Statement.Context, row)
		if !statement.SameValue(mine, theirs, column.TickIn(db, field)) {
			return false
		}
	}
	return true
}

// readUpsert reads the rows of an upsert that the server did not return, by the keys of its structs. It reports whether it could. In a transaction
// the rows are locked.
func (a *answer) readUpsert(db *gorm.DB) (could bool, err error) {
	r := a.returning
	if !r.wanted() || !r.back || statement.Transaction(db.Statement) == nil {
		return false, nil
	}
	var keys [][]any
	for i := range a.rows {
		row := &a.rows[i]
		if row.Key == nil { // it uses the key that GORM has computed, which may be another row's
			row.Key, _ = statement.KeyOf(db.Statement, a.model.Schema, row.Struct)
			row.name, a.upsert.rows[i].guessed = statement.KeyName(row.Key), true
		}
		if row.Key != nil {
			keys = append(keys, row.Key)
		}
	}
	return true, a.readInto(db, keys, func(found []reflect.Value) []reflect.Value { return found })
}

// isUnseen reports whether it is unknown what an upsert did with the struct: GORM has guessed its key, and the row with that key differs from the
// struct. Then the struct counts as not read.
func (a *answer) isUnseen(db *gorm.DB, i int, row reflect.Value) bool {
	return a.upsert.rows[i].guessed &&
		(!row.IsValid() || !a.version.Read(row).Equal(a.version.Stored(a.rows[i].next)) || !a.isRow(db, i, row))
}

// skipByKey limits the skipping of an existing association to its key. If another row has one of its unique values, the association does not exist,
// and nothing could refer to it: then the server returns an error.
func (d *draft) skipByKey(stmt *gorm.Statement, conflict clause.OnConflict) {
	if len(conflict.Columns) > 0 || conflict.OnConstraint != "" || dialect.Of(stmt.DB).FindsByAnyIndex() || !d.hasKeys(stmt) || statement.InLinking() {
		return
	}
	if d.isNamedByOthers(stmt) || !d.hasUniqueKey(stmt) {
		return // see whyUnnamed
	}
	d.upsert.skipsByKey = true
	had := stmt.Clauses["ON CONFLICT"]
	d.upsert.had = &had
	for _, name := range d.model.Schema.PrimaryFieldDBNames {
		conflict.Columns = append(conflict.Columns, clause.Column{Name: name})
	}
	stmt.Clauses["ON CONFLICT"] = clause.Clause{Name: "ON CONFLICT", Expression: conflict}
}

// hasUniqueKey reports whether there is a unique index on the model's key alone. A partitioned table may have none.
func (p *plan) hasUniqueKey(stmt *gorm.Statement) bool {
	if !dialect.Of(stmt.DB).IsPostgres() {
		return true
	}
	names := slices.Sorted(slices.Values(p.model.Schema.PrimaryFieldDBNames))
	table, key := statement.NameInSQL(stmt), strings.Join(names, ",")
	return journal.Ask(stmt, "unique "+key, table, `SELECT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = to_regclass($1)
		AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AND $2 = (SELECT string_agg(a.attname::text, ',' ORDER BY a.attname::text COLLATE "C")
			FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])))`, table, key)
}
