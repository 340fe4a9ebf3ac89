package guard

import (
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// A view, a function and a cursor give rows of tables that the query does not name, so a form or a map may have the version of any
// model from them. A query of tables alone says whose rows it reads.

// versioned are the models with a version that the plugin has met.
func versioned(db *gorm.DB) (all []*model.Model) {
	install.Of(db).Models.Range(func(_, known any) bool {
		if m := known.(*model.Model); m.Column != nil { //nolint:forcetypeassert // as it is stored
			all = append(all, m)
		}
		return true
	})
	return all
}

// mayBeOf are those of the models whose versions a query may have read.
func mayBeOf(stmt *gorm.Statement, models []*model.Model) []*model.Model {
	text := stmt.SQL.String()
	if named := namedIn(text, models); len(named) > 0 && !hasOthers(models, named) || readsTables(stmt, text, true) {
		return named
	}
	return models
}

// namedIn are those of the models whose tables a text names, whatever it says of their schemas.
func namedIn(text string, models []*model.Model) (named []*model.Model) {
	text = strings.ToLower(text)
	for _, m := range models {
		if names(text, strings.ToLower(m.Table[strings.LastIndexByte(m.Table, '.')+1:])) {
			named = append(named, m)
		}
	}
	return named
}

// hasOthers reports whether one of the models has a version column that none of the named ones has.
func hasOthers(models, named []*model.Model) bool {
	return slices.ContainsFunc(models, func(m *model.Model) bool {
		return !slices.ContainsFunc(named, func(n *model.Model) bool { return n.Column.Field.DBName == m.Column.Field.DBName })
	})
}

// readsTables reports whether a query reads from nothing else than tables, each from its own rows alone. The server is asked if that
// is allowed: it is not while rows of the query are open.
func readsTables(stmt *gorm.Statement, text string, ask bool) bool {
	sources, told := sqltext.Sources(text)
	return told && !slices.ContainsFunc(sources, func(name string) bool { return !isTable(stmt, name, ask) })
}

// AskForScan asks the server what Scan will need to know of the names in a query.
func AskForScan(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || install.Of(db) == nil {
		return
	}
	if j := journal.Of(stmt); j == nil || j.Written() == 0 {
		return
	}
	if stmt.SQL.Len() == 0 { // it is not built yet
		if name := statement.NameInSQL(stmt); name != "" {
			isTable(stmt, name, true)
		}
		return
	}
	text := stmt.SQL.String()
	models := versioned(db)
	if named := namedIn(text, models); len(models) > 0 && (len(named) == 0 || hasOthers(models, named)) {
		readsTables(stmt, text, true)
	}
}

// asksTable is of a name: whether it is that of a table that shares its rows with no other. It is not that of a view, a part, a parent or
// a table elsewhere.
const asksTable = `SELECT relkind = 'r' AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent))
FROM pg_catalog.pg_class c WHERE c.oid = to_regclass($1)`

// isTable answers asksTable. What is not known is none.
func isTable(stmt *gorm.Statement, name string, ask bool) bool {
	if is, known := journal.Known(stmt, asksTable, name); known || !ask {
		return known && is.(bool) //nolint:forcetypeassert // it is kept below
	}
	question, about := asksTable, any(name)
	switch d := dialect.Of(stmt.DB); {
	case d.IsMySQL():
		question, about = "SELECT table_type = 'BASE TABLE' FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?", strings.Trim(name, "`")
	case d.IsSQLite():
		question, about = "SELECT type = 'table' FROM sqlite_master WHERE name = ?", strings.Trim(name, "`\"")
	}
	rows, err := statement.Unprepared(stmt.ConnPool).QueryContext(stmt.Context, question, about)
	if err != nil {
		return false
	}
	defer func() { _ = rows.Close() }()
	var is bool
	if !rows.Next() || rows.Scan(&is) != nil || rows.Err() != nil {
		return false
	}
	journal.Learn(stmt, asksTable, name, is)
	return is
}

// carriedBy are those of the models whose version is in what was read, if it is not one of their own structs.
func carriedBy(db *gorm.DB, models []*model.Model, read []reflect.Value, text string) (carried []*model.Model) {
	for _, m := range models {
		var last reflect.Type
		if slices.ContainsFunc(read, func(value reflect.Value) bool {
			if value.Kind() == reflect.Struct && value.Type() == last {
				return false // as the one before
			}
			last = value.Type()
			return carries(db, m, value, text)
		}) {
			carried = append(carried, m)
		}
	}
	return carried
}

func carries(db *gorm.DB, m *model.Model, value reflect.Value, text string) bool {
	switch kind := value.Kind(); {
	case kind == reflect.Map:
		row, _ := value.Interface().(map[string]any)
		return len(keysOfVersion(m, row)) > 0
	case value.Type() == m.Schema.ModelType:
		return true
	case kind == reflect.Struct && !scans(value):
		return len(fieldsOfForm(db, m, value)) > 0
	default:
		return sqltext.ReadsInto(text, m.Column.Field.DBName)
	}
}
