package reading

import (
	"database/sql"
	"database/sql/driver"
	"reflect"
	"slices"
	"strings"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/sqltx"
	"github.com/gormlock/gormlock/internal/statement"
)

// If GORM reads two columns into one place, it keeps the last one. A join that selects a star may so give a struct the version of another table's
// row. So may a column that has the name of the field.

// noteColumns makes a query note which columns it returns, if GORM reads columns by name but has not written the list itself, or if a struct is
// read again.
func noteColumns(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || install.Of(db) == nil {
		return
	}
	again := isAgain(stmt)
	if isOwnList(stmt) && !again {
		return
	}
	row := rowType(stmt.Dest)
	if row != nil && (row.Kind() == reflect.Struct || row.Kind() == reflect.Map || row.Kind() == reflect.Interface) {
		statement.NoteColumns(stmt, again)
	}
}

// refuseDoubled fails a query that has read two columns into one place of the model. Its structs count as not read, even if the query failed after
// some of them.
func refuseDoubled(db *gorm.DB, columns *statement.Columns) {
	stmt := db.Statement
	if columns == nil || columns.Asked && columns.Names == nil || db.RowsAffected == 0 || db.DryRun {
		return
	}
	text := stmt.SQL.String()
	if !columns.Asked { // another plugin has answered the query, and nobody knows what it would have returned
		if sqltext.MayDouble(text) {
			forgetRead(stmt)
		}
		return
	}
	read := placesIn(stmt, modelsRead(db, stmt.Schema, text), renamed(stmt, withoutOwn(text, columns.Names)), rowType(stmt.Dest))
	err := read.refused(text)
	if err == nil {
		return
	}
	forgetRead(stmt)
	if sqltext.Reads(text) { // otherwise it has written
		fault.Add(db, err)
	}
}

// renamed returns the columns with the names that MapColumns gives them.
func renamed(stmt *gorm.Statement, names []string) []string {
	for i, name := range names {
		if other, is := stmt.ColumnMapping[name]; is {
			names[i] = other
		} else if dialect.Of(stmt.DB).IsSQLite() { // SQLite numbers repeated columns of a sub-query
			names[i], _, _ = strings.Cut(name, ":")
		}
	}
	return names
}

// forgetRead makes everything that the query has read count as not read.
func forgetRead(stmt *gorm.Statement) {
	r := readOf(stmt)
	r.models = modelsRead(r.db, r.schema, r.text)
	r.hold(reflect.ValueOf(stmt.Dest))
	r.Lose()
}

// refuseDoubledScan does the same for Scan, whose destination is known only after its first row. If it refuses, no versions reach the structs.
func refuseDoubledScan(db *gorm.DB) {
	stmt, text := db.Statement, db.Statement.SQL.String()
	rows, are := stmt.Dest.(*sql.Rows)
	if db.Error != nil || !are || rows == nil || install.Of(db) == nil || len(stmt.ColumnMapping) == 0 && !sqltext.MayDouble(text) || !inScan(db) {
		return
	}
	columns, err := rows.Columns()
	models, names := modelsRead(db, nil, text), renamed(stmt, slices.Clone(withoutOwn(text, columns)))
	if err != nil || !mayMeet(models, names) {
		return
	}
	var refused error
	var none []any // the versions that structs get if Scan is refused
	judge := sync.OnceFunc(func() {
		read := placesIn(stmt, models, names, rowType(stmt.Dest))
		if refused = read.refused(text); refused != nil {
			none = read.unread()
		}
	})
	read, err := sqltx.Relay(rows, sqltx.OnRows{Change: func(row []driver.Value) { //nolint:rowserrcheck // Scan does
		judge()
		for i, version := range none {
			if version != nil {
				row[i] = version
			}
		}
	}, End: func() error { return refused }})
	if err != nil {
		_ = rows.Close()
		fault.Add(db, err)
		return
	}
	stmt.Dest = read
}

// rowType is the type into which one row is read; nil if there is no destination.
func rowType(dest any) reflect.Type {
	into := reflect.ValueOf(dest)
	for (into.Kind() == reflect.Pointer || into.Kind() == reflect.Interface) && !into.IsNil() {
		into = into.Elem()
	}
	if !into.IsValid() {
		return nil
	}
	row := into.Type()
	for row.Kind() == reflect.Pointer || row.Kind() == reflect.Slice || row.Kind() == reflect.Array {
		row = row.Elem()
	}
	return row
}

// inScan reports whether GORM's Scan makes the query: it records what the query logs.
func inScan(db *gorm.DB) bool {
	return reflect.TypeOf(db.Logger) == reflect.TypeOf(logger.Recorder.New())
}

// isOwnList reports whether GORM writes which columns the query returns, each of them once.
func isOwnList(stmt *gorm.Statement) bool {
	_, selects := stmt.Clauses["SELECT"]
	from, is := stmt.Clauses["FROM"].Expression.(clause.From)
	given := len(from.Tables)+len(from.Joins) > 0 || !is && stmt.Clauses["FROM"].Expression != nil
	if selects || given || stmt.SQL.Len() > 0 || len(stmt.ColumnMapping) > 0 || stmt.Schema == nil && len(stmt.Joins) > 0 {
		return false
	}
	if table := stmt.TableExpr; table != nil && (len(table.Vars) > 0 || strings.ContainsAny(table.SQL, " \t\n,(")) {
		return false
	}
	return !slices.ContainsFunc(stmt.Selects, func(name string) bool { return stmt.Schema == nil || stmt.Schema.LookUpField(name) == nil })
}
