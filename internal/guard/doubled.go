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
)

// GORM keeps the last of two columns of one name. A join that selects a star may give a struct the version of another table's row.

// refuseDoubled fails a query that has read two columns under the name of one of the model's. Its structs count as not read.
func refuseDoubled(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.RowsAffected == 0 || db.DryRun || install.Of(db) == nil || isOwnList(stmt) || !sqltext.MayDouble(stmt.SQL.String()) {
		return
	}
	models := modelsRead(db, stmt.Schema, stmt.SQL.String())
	if len(models) == 0 {
		return
	}
	query, is := sqltext.Query(stmt.SQL.String())
	if !is { // it writes, and cannot be asked about
		for _, row := range rowsIn(stmt.Dest) {
			forgetCarrier(&gorm.DB{Config: db.Config}, models, row, "")
		}
		return
	}
	names, err := columnsOf(db, query)
	if err != nil {
		fault.Add(db, fmt.Errorf("gormlock: %s: ask which columns the query returns: %w", models[0].Schema.Name, err))
		return
	}
	into := reflect.ValueOf(stmt.Dest)
	for kind := into.Kind(); kind == reflect.Pointer || (kind == reflect.Slice || kind == reflect.Array) && into.Len() > 0; kind = into.Kind() {
		if kind == reflect.Pointer {
			into = into.Elem()
		} else {
			into = into.Index(0)
		}
	}
	if err := doubledFor(db, models, names, into); err != nil {
		fault.Add(db, err)
		for _, row := range rowsIn(stmt.Dest) {
			forgetCarrier(&gorm.DB{Config: db.Config}, models, row, "")
		}
	}
}

// rowsIn are what carries rows in the destination of a query.
func rowsIn(dest any) (rows []reflect.Value) {
	carriers(reflect.ValueOf(dest), func(row reflect.Value) { rows = append(rows, row) })
	return rows
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
	kind := reflect.TypeOf(dest)
	if kind == nil {
		return reflect.Value{}
	}
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice || kind.Kind() == reflect.Array {
		kind = kind.Elem()
	}
	return reflect.New(kind).Elem()
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

// isOwnList reports whether GORM has written which columns a query returns, and from which table: each of them once.
func isOwnList(stmt *gorm.Statement) bool {
	selects, built := stmt.Clauses["SELECT"].Expression.(clause.Select)
	from, _ := stmt.Clauses["FROM"].Expression.(clause.From)
	alone := len(from.Tables) == 0 && len(from.Joins) == 0 && stmt.TableExpr == nil
	return built && selects.Expression == nil && len(stmt.Selects) == 0 && (alone || len(selects.Columns) > 0 && len(stmt.Joins) > 0)
}

// columnsOf asks the server which columns the query returns. It reads no row.
func columnsOf(db *gorm.DB, query string) (names []string, err error) {
	stmt := db.Statement
	rows, err := stmt.ConnPool.QueryContext(stmt.Context, "SELECT * FROM ("+query+"\n) AS gormlock_columns LIMIT 0", stmt.Vars...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	names, err = rows.Columns()
	if err == nil {
		rows.Next()
		err = rows.Err()
	}
	if dialect.Of(db).IsSQLite() { // which numbers those that occur again
		for i, name := range names {
			names[i], _, _ = strings.Cut(name, ":")
		}
	}
	return names, err
}
