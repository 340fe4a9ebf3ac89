package guard

import (
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/sqltx"
	"github.com/gormlock/gormlock/internal/statement"
)

// GORM keeps the last of two columns of one name. A join that selects a star may give a struct the version of another table's row.

// NoteColumns lets a query note which columns it returns, if somebody else than GORM writes their list and GORM reads them by their
// names.
func NoteColumns(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || install.Of(db) == nil || isOwnList(stmt) {
		return
	}
	row := rowType(stmt.Dest)
	if row != nil && (row.Kind() == reflect.Struct || row.Kind() == reflect.Map || row.Kind() == reflect.Interface) {
		statement.NoteColumns(stmt)
	}
}

// refuseDoubled fails a query that has read two columns under the name of one of the model's. Its structs count as not read, also if
// it has failed behind some of them.
func refuseDoubled(db *gorm.DB, columns *statement.Columns) {
	stmt := db.Statement
	if columns == nil || columns.Asked && columns.Names == nil || db.RowsAffected == 0 || db.DryRun {
		return
	}
	text := stmt.SQL.String()
	if !columns.Asked { // somebody else has answered the query, and nobody knows what it would have returned
		if sqltext.MayDouble(text) {
			forgetRead(stmt)
		}
		return
	}
	err := doubledFor(db, modelsRead(db, stmt.Schema, text), renamed(stmt, columns.Names), readInto(stmt.Dest))
	if err == nil {
		return
	}
	forgetRead(stmt)
	if sqltext.Reads(text) { // if not, it has written
		fault.Add(db, err)
	}
}

// renamed are the columns by the names that MapColumns gives them.
func renamed(stmt *gorm.Statement, names []string) []string {
	for i, name := range names {
		if other, is := stmt.ColumnMapping[name]; is {
			names[i] = other
		} else if dialect.Of(stmt.DB).IsSQLite() { // which numbers those of a sub-query that occur again
			names[i], _, _ = strings.Cut(name, ":")
		}
	}
	return names
}

// forgetRead makes all that the query has read count as not read.
func forgetRead(stmt *gorm.Statement) {
	r := readOf(stmt)
	r.hold(reflect.ValueOf(stmt.Dest))
	r.Lose()
}

// readInto is what a row was read into.
func readInto(dest any) reflect.Value {
	into := reflect.ValueOf(dest)
	for kind := into.Kind(); kind == reflect.Pointer || (kind == reflect.Slice || kind == reflect.Array) && into.Len() > 0; kind = into.Kind() {
		if kind == reflect.Pointer {
			into = into.Elem()
		} else {
			into = into.Index(0)
		}
	}
	return into
}

// refuseDoubledScan does the same for Scan, which says only after its first row what it reads into. Until then no version is the row's.
func refuseDoubledScan(db *gorm.DB) {
	stmt := db.Statement
	rows, are := stmt.Dest.(*sql.Rows)
	if db.Error != nil || !are || rows == nil || install.Of(db) == nil || !sqltext.MayDouble(stmt.SQL.String()) || !inScan(db) {
		return
	}
	names, err := rows.Columns()
	models := modelsRead(db, nil, stmt.SQL.String())
	if err != nil || doubledFor(db, models, names, reflect.Value{}) == nil {
		return
	}
	read, err := sqltx.Relay(rows, func(row []any) { //nolint:rowserrcheck // Scan does
		for _, m := range models {
			for i, name := range names {
				if name == m.Column.Field.DBName {
					row[i] = m.Column.Any(m.Column.OfNoRow())
				}
			}
		}
	}, func() error {
		if _, unscanned := stmt.Dest.(*sql.Rows); unscanned {
			return nil
		}
		return doubledFor(db, models, names, oneOf(stmt.Dest))
	})
	if err != nil {
		_ = rows.Close()
		fault.Add(db, err)
		return
	}
	stmt.Dest = read
}

// oneOf is what one row is read into, of a destination that may have none yet.
func oneOf(dest any) reflect.Value {
	if row := rowType(dest); row != nil {
		return reflect.New(row).Elem()
	}
	return reflect.Value{}
}

// rowType is the type of it; nil if there is no destination.
func rowType(dest any) reflect.Type {
	row := reflect.TypeOf(dest)
	for row != nil && (row.Kind() == reflect.Pointer || row.Kind() == reflect.Slice || row.Kind() == reflect.Array) {
		row = row.Elem()
	}
	return row
}

// inScan reports whether GORM's Scan makes the query: it records what the query logs.
func inScan(db *gorm.DB) bool {
	return reflect.TypeOf(db.Logger) == reflect.TypeOf(logger.Recorder.New())
}

// doubledFor is the error of a query that returns different columns under one name, if that is a version's, or that of any other column
// of a model whose structs are read. What it reads the rows into is not valid where that is not known.
func doubledFor(db *gorm.DB, models []*model.Model, names []string, into reflect.Value) error {
	for i, name := range names {
		if !slices.Contains(names[:i], name) {
			continue
		}
		for _, m := range models {
			isModel := into.IsValid() && into.Type() == m.Schema.ModelType
			if (isModel && m.Schema.FieldsByDBName[name] != nil || !isModel && name == m.Column.Field.DBName && mayHold(db, into, name)) && !isRepeated(db, names, name) {
				return fmt.Errorf("gormlock: %s: the query returns two columns %q, of which GORM keeps the last: select the columns by name, as in Select(%q)",
					m.Schema.Name, name, m.Schema.Table+".*")
			}
		}
	}
	return nil
}

// isRepeated reports whether all columns of a name are the same one.
func isRepeated(db *gorm.DB, names []string, name string) bool {
	n := 0
	for _, other := range names {
		if other == name {
			n++
		}
	}
	return sqltext.IsRepeated(db.Statement.SQL.String(), name, n)
}

// mayHold reports whether what is read into has a place for a column.
func mayHold(db *gorm.DB, into reflect.Value, column string) bool {
	if !into.IsValid() || into.Kind() == reflect.Map || into.Kind() == reflect.Interface {
		return true
	}
	form := &gorm.Statement{DB: db}
	return into.Kind() == reflect.Struct && into.CanAddr() && form.Parse(into.Addr().Interface()) == nil && form.Schema.LookUpField(column) != nil
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
