package reading

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
	"github.com/gormlock/gormlock/internal/pgarray"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// A view, a function and a cursor return rows of tables that the text does not name. So a form or a map may get the version of any model from them.
// Only the server knows where each column comes from. So every table that the text names counts, unless each column has the name of one table
// before it.

// versioned are the models with a version that the plugin has seen.
func versioned(db *gorm.DB) (all []*model.Model) {
	install.Of(db).Models.Range(func(_, known any) bool {
		if m := known.(*model.Model); m.Column != nil { //nolint:forcetypeassert // as it is stored
			all = append(all, m)
		}
		return true
	})
	return all
}

// mayBeOf are those of the models whose versions a text may have read into columns with these names; nil means all columns. The server is asked
// what the names in the text stand for, if ask allows it. It is not allowed while rows of the query are open.
func mayBeOf(stmt *gorm.Statement, models []*model.Model, columns map[string]bool, ask bool) []*model.Model {
	var wanted func(string) bool
	if columns != nil {
		wanted = func(name string) bool { return columns[strings.ToLower(name)] }
	}
	names, told := sqltext.Sources(stmt.SQL.String(), wanted)
	if !told || journal.HasMadeTables(stmt) {
		return models
	}
	of := namedIn(names, models)
	if covers(of, models) {
		return of
	}
	tables, known := tablesBehind(stmt, names, ask)
	if !known {
		return models
	}
	return append(of, namedIn(tables, models)...)
}

// covers reports whether each model of all has its version in a column of the same name as one of models.
func covers(models, all []*model.Model) bool {
	return !slices.ContainsFunc(all, func(m *model.Model) bool {
		return !slices.ContainsFunc(models, func(n *model.Model) bool { return n.Column.Field.DBName == m.Column.Field.DBName })
	})
}

// namedIn are those of the models whose table has one of the names, in any schema.
func namedIn(names []string, models []*model.Model) (named []*model.Model) {
	for _, m := range models {
		table := tableOf(m)
		if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(strings.TrimPrefix(name, "."), table) }) {
			named = append(named, m)
		}
	}
	return named
}

// tableOf is the name of a model's table, without its schema.
func tableOf(m *model.Model) string { return m.Table[strings.LastIndexByte(m.Table, '.')+1:] }

// AskForScan asks the server about the names in a query, before Scan needs the answers.
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
		askFor(stmt, models)
		return
	}
	text := &strings.Builder{} // the text is not built yet, but will contain this
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
	askFor(likely, models)
}

// askFor asks what Scan may need, whatever its destination is.
func askFor(stmt *gorm.Statement, models []*model.Model) {
	mayBeOf(stmt, models, versionNames(models), true)
	mayBeOf(stmt, models, nil, true)
}

// versionNames are the names that versions of the models can have, in small letters.
func versionNames(models []*model.Model) map[string]bool {
	all := map[string]bool{}
	for _, m := range models {
		all[strings.ToLower(m.Column.Field.DBName)], all[strings.ToLower(m.Column.Field.Name)] = true, true
	}
	return all
}

// asksTables asks about names. For each name of a table, a view or a function it returns the tables whose rows that name gives: itself, the tables
// that a view reads or a rule names, the parts of a table and its parents. They are NULL if a function or a foreign table gives rows. A name with a
// dot before it can be in any schema. No name causes an error.
const asksTables = `WITH RECURSIVE named AS (SELECT name, ltrim(name, '.') AS bare, left(name, 1) = '.' AS behind FROM unnest($1::text::text[]) name),
read AS (
 SELECT named.name, c.oid FROM named JOIN pg_catalog.pg_class c ON c.relname = named.bare AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
 WHERE named.behind OR pg_catalog.pg_table_is_visible(c.oid)
 UNION SELECT read.name, behind.oid FROM read CROSS JOIN LATERAL (
 SELECT d.refobjid AS oid FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_depend d ON d.objid = r.oid
 WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass AND r.ev_class = read.oid
 UNION ALL SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = read.oid
 UNION ALL SELECT i.inhparent FROM pg_catalog.pg_inherits i WHERE i.inhrelid = read.oid) behind)
SELECT read.name, CASE WHEN c.relkind IN ('r', 'p', 'v', 'm', 'S') AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_rewrite r
 JOIN pg_catalog.pg_depend d ON d.objid = r.oid WHERE r.ev_class = c.oid AND d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.refclassid = 'pg_catalog.pg_proc'::regclass)
 THEN c.relname END
FROM read JOIN pg_catalog.pg_class c ON c.oid = read.oid
UNION ALL SELECT named.name, NULL FROM named JOIN pg_catalog.pg_proc p ON p.proname = named.bare
WHERE (named.behind OR pg_catalog.pg_function_is_visible(p.oid)) AND
 (p.pronamespace <> 'pg_catalog'::regnamespace OR named.bare LIKE '%\_to\_xml%' OR named.bare IN ('ts_stat', 'ts_rewrite'))`

// origin is what the server says about a name.
type origin struct {
	tables []string
	known  bool
}

// tablesBehind returns the answer to asksTables, if it is known for all names.
func tablesBehind(stmt *gorm.Statement, names []string, ask bool) (tables []string, known bool) {
	var unasked []string
	for _, name := range names {
		answer, is := journal.Known(stmt, asksTables, name)
		if !is {
			unasked = append(unasked, name)
		} else if b, _ := answer.(*origin); !b.known {
			return nil, false
		} else {
			tables = append(tables, b.tables...)
		}
	}
	if len(unasked) == 0 {
		return tables, true
	}
	if !ask {
		return nil, false
	}
	answers, err := askTables(stmt, unasked)
	if err != nil {
		return nil, false
	}
	known = true
	for name, b := range answers {
		journal.Learn(stmt, asksTables, name, b)
		tables, known = append(tables, b.tables...), known && b.known
	}
	return tables, known
}

func askTables(stmt *gorm.Statement, names []string) (map[string]*origin, error) {
	var question string
	var about []any
	list := strings.TrimSuffix(strings.Repeat("?,", len(names)), ",")
	for _, name := range names {
		about = append(about, strings.TrimPrefix(name, "."))
	}
	switch d := dialect.Of(stmt.DB); {
	case d.IsMySQL():
		question = "SELECT table_name, CASE WHEN table_type = 'BASE TABLE' THEN table_name END FROM information_schema.tables WHERE table_name IN (" + list +
			") UNION ALL SELECT routine_name, NULL FROM information_schema.routines WHERE routine_name IN (" + list + ")"
		about = append(about, about...)
	case d.IsSQLite():
		question = "SELECT name, CASE type WHEN 'table' THEN name END FROM sqlite_master WHERE type IN ('table', 'view') AND name COLLATE NOCASE IN (" + list + ")"
	default:
		var asked pgarray.Array
		for _, name := range names {
			asked.Text(name)
		}
		question, about = asksTables, []any{asked.String()}
	}
	rows, err := statement.Unprepared(stmt.ConnPool).QueryContext(stmt.Context, question, about...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	answers := map[string]*origin{}
	for _, name := range names {
		answers[name] = &origin{known: true} // the name of neither a table, a view nor a function
	}
	for rows.Next() {
		var of string
		var table sql.NullString
		if err := rows.Scan(&of, &table); err != nil {
			return nil, err
		}
		for _, name := range names {
			if b := answers[name]; name == of || !statement.IsPostgres(stmt.DB) && strings.EqualFold(strings.TrimPrefix(name, "."), of) {
				b.tables, b.known = append(b.tables, table.String), b.known && table.Valid
			}
		}
	}
	return answers, rows.Err()
}

// carriedBy are those of the models whose version is in what was read, outside of their own structs.
func carriedBy(db *gorm.DB, models []*model.Model, read []reflect.Value, text string) (carried []*model.Model) {
	for _, m := range models {
		var last reflect.Type
		if slices.ContainsFunc(read, func(value reflect.Value) bool {
			if value.Kind() == reflect.Struct && value.Type() == last {
				return false // as in the one before
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

// columnsOf are the column names from which the versions of these models came.
func columnsOf(db *gorm.DB, models []*model.Model, read []reflect.Value) map[string]bool {
	all := versionNames(models)
	for _, value := range read {
		if value.Kind() != reflect.Struct && value.Kind() != reflect.Map {
			return nil // a place of one column, whatever that is called
		}
		for _, m := range models {
			if value.Kind() == reflect.Struct && value.Type() != m.Schema.ModelType && !scans(value) {
				for _, field := range fieldsOfForm(db, m, value) {
					all[strings.ToLower(field.DBName)], all[strings.ToLower(field.Name)] = true, true
				}
			}
		}
		if value.Kind() == reflect.Struct {
			break // as in the others
		}
	}
	return all
}
