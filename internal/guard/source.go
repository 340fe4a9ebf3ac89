package guard

import (
	"database/sql"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

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

// mayBeOf are those of the models whose versions a query may have read into columns of these names; nil are all columns. The server is
// asked what names stand for if that is allowed: it is not while rows of the query are open.
func mayBeOf(stmt *gorm.Statement, models []*model.Model, columns map[string]bool, ask bool) (of []*model.Model) {
	text := stmt.SQL.String()
	var wanted func(string) bool
	if columns != nil {
		wanted = func(name string) bool { return columns[strings.ToLower(name)] }
	}
	sources, told := sqltext.Sources(text, wanted)
	if target, writes := sqltext.Target(text); writes { // whatever else it reads from is in the text too
		of, sources, told = namedIn(text, models), []string{target}, true
	}
	if !told || journal.HasMadeTables(stmt) {
		return models
	}
	var others []string
	for _, source := range sources {
		if named := namedIn(source, models); len(named) > 0 {
			of = append(of, named...)
		} else {
			others = append(others, source)
		}
	}
	for i := 0; i < len(others) && !covers(of, models); i++ {
		tables := tablesBehind(stmt, others[i], ask)
		if tables == "" {
			return models
		}
		of = append(of, namedIn(tables, models)...)
	}
	return of
}

// covers reports whether each of all has its version in a column that one of the models has it in.
func covers(models, all []*model.Model) bool {
	return !slices.ContainsFunc(all, func(m *model.Model) bool {
		return !slices.ContainsFunc(models, func(n *model.Model) bool { return n.Column.Field.DBName == m.Column.Field.DBName })
	})
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

// AskForScan asks the server what Scan will need to know of the names in a query.
func AskForScan(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || install.Of(db) == nil || !inScan(db) {
		return
	}
	if j := journal.Of(stmt); j == nil || j.Written() == 0 {
		return
	}
	models := versioned(db)
	if len(models) == 0 {
		return
	}
	if stmt.SQL.Len() > 0 {
		mayBeOf(stmt, models, versionNames(models), true)
		return
	}
	text := &strings.Builder{} // it is not built yet, and will have this much of it
	text.WriteString("SELECT ")
	if list, is := stmt.Clauses["SELECT"].Expression.(clause.Expr); is {
		text.WriteString(list.SQL)
	} else if len(stmt.Selects) > 0 {
		text.WriteString(strings.Join(stmt.Selects, ","))
	} else {
		text.WriteString("*")
	}
	text.WriteString(" FROM " + statement.NameInSQL(stmt))
	for _, join := range stmt.Joins {
		if strings.Contains(join.Name, " ") {
			text.WriteString(" " + join.Name)
		}
	}
	likely := &gorm.Statement{DB: stmt.DB, ConnPool: stmt.ConnPool, Context: stmt.Context, Clauses: stmt.Clauses}
	likely.SQL.WriteString(text.String())
	mayBeOf(likely, models, versionNames(models), true)
}

// versionNames are what versions of the models may be called, in small letters.
func versionNames(models []*model.Model) map[string]bool {
	all := map[string]bool{}
	for _, m := range models {
		all[strings.ToLower(m.Column.Field.DBName)], all[strings.ToLower(m.Column.Field.Name)] = true, true
	}
	return all
}

// asksTables is of a name and its schema, which may be empty: the tables whose rows it has, itself among them: those that a view reads, the
// parts of a table and its parents. It is NULL where a function gives rows, or a table elsewhere. It raises no error, whatever the name is.
const asksTables = `WITH RECURSIVE read AS (
 SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relname = $1 AND CASE WHEN $2 = '' THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $2 END
 UNION SELECT behind.oid FROM read CROSS JOIN LATERAL (
 SELECT d.refobjid AS oid FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_depend d ON d.objid = r.oid
 WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass AND r.ev_class = read.oid AND r.ev_type = '1'
 UNION ALL SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = read.oid
 UNION ALL SELECT i.inhparent FROM pg_catalog.pg_inherits i WHERE i.inhrelid = read.oid) behind)
SELECT CASE WHEN bool_and(c.relkind IN ('r', 'p', 'v', 'm')) AND NOT EXISTS (SELECT 1 FROM read JOIN pg_catalog.pg_rewrite r ON r.ev_class = read.oid
 JOIN pg_catalog.pg_depend d ON d.objid = r.oid WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.refclassid = 'pg_catalog.pg_proc'::regclass)
 THEN string_agg(c.relname, ' ') END
FROM read JOIN pg_catalog.pg_class c ON c.oid = read.oid`

// tablesBehind answers asksTables. It is empty where that is not known.
func tablesBehind(stmt *gorm.Statement, name string, ask bool) string {
	if tables, known := journal.Known(stmt, asksTables, name); known || !ask {
		behind, _ := tables.(string)
		return behind
	}
	schema, table, ok := sqltext.TableName(name)
	if !ok {
		return ""
	}
	question, about := asksTables, []any{table, schema}
	switch d := dialect.Of(stmt.DB); {
	case d.IsMySQL():
		question = "SELECT max(table_name) FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND table_name = ? AND table_schema = CASE WHEN ? = '' THEN DATABASE() ELSE ? END"
		about = append(about, schema)
	case d.IsSQLite():
		question, about = "SELECT max(name) FROM sqlite_master WHERE type = 'table' AND lower(name) = lower(?)", []any{table}
	}
	rows, err := statement.Unprepared(stmt.ConnPool).QueryContext(stmt.Context, question, about...)
	if err != nil {
		return ""
	}
	defer func() { _ = rows.Close() }()
	var tables sql.NullString
	if !rows.Next() || rows.Scan(&tables) != nil || rows.Err() != nil {
		return ""
	}
	journal.Learn(stmt, asksTables, name, tables.String)
	return tables.String
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

// columnsOf are the names under which the versions of these models came into what was read.
func columnsOf(db *gorm.DB, models []*model.Model, read []reflect.Value) map[string]bool {
	all := versionNames(models)
	for _, value := range read {
		if value.Kind() != reflect.Struct && value.Kind() != reflect.Map {
			return nil // a place of one column, whatever it is called
		}
		for _, m := range models {
			if value.Kind() == reflect.Struct && value.Type() != m.Schema.ModelType && !scans(value) {
				for _, field := range fieldsOfForm(db, m, value) {
					all[strings.ToLower(field.DBName)], all[strings.ToLower(field.Name)] = true, true
				}
			}
		}
		if value.Kind() == reflect.Struct {
			break // as the others
		}
	}
	return all
}
