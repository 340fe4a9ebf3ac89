package journal

import (
	"reflect"
	"slices"
	"sync"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// TableName is a name that statements have for a table, and what decides which table that is.
type TableName struct {
	statement.Relation
	path   string // what has said where names are looked up
	remade bool   // behind a statement that may have made or renamed tables
}

// IsSame reports whether two names mean the same table, whatever that is.
func (n TableName) IsSame(other TableName) bool {
	return n.Relation == other.Relation && n.path == other.path
}

// Tables are the names of tables that a transaction has met, and what the server has said of them. One table may have several: those of a
// view and of a partition are its names too. So the server is asked which table a name is, but only if a transaction has two names for the
// table of one model, and writes.
type Tables struct {
	mu   sync.Mutex
	met  []metTable
	said map[TableName]string // which table a name is; empty: its rows may also have another name
}

type metTable struct {
	of   reflect.Type
	name TableName
}

// Tables are those of the transaction, and a name for one without the name itself. Both are empty outside of transactions.
func (j *journal) Tables() (tables *Tables, now TableName) {
	if j == nil {
		return nil, TableName{}
	}
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if j.tables == nil {
		j.tables = &Tables{}
	}
	return j.tables, TableName{path: j.past.names, remade: j.remade}
}

// Meet notes that a statement has a model in a table.
func (t *Tables) Meet(of reflect.Type, name TableName) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := (metTable{of, name}); !slices.Contains(t.met, one) {
		t.met = append(t.met, one)
	}
}

// Which is the table that a name is: no other name that is known has its rows. It is empty if that is not certain.
func (t *Tables) Which(name TableName) string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said[name]
}

// Ask asks the server which tables the names of a model are, if there are several. It is called before a statement writes: the server answers
// nothing any more when a statement has failed, and what the transaction has renamed it knows by other names.
func (t *Tables) Ask(stmt *gorm.Statement, of reflect.Type, now TableName) {
	if t == nil || now.remade || stmt.DryRun || stmt.Error != nil {
		return
	}
	for _, name := range t.unsaid(of) {
		if which, answered := which(stmt, name, now.path); answered {
			t.say(name, which)
		}
	}
}

// unsaid are the names of a model of which the server has said nothing, if it has several.
func (t *Tables) unsaid(of reflect.Type) (names []TableName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	several := 0
	for _, one := range t.met {
		if one.of != of {
			continue
		}
		several++
		if _, said := t.said[one.name]; !said {
			names = append(names, one.name)
		}
	}
	if several < 2 {
		return nil
	}
	return names
}

func (t *Tables) say(name TableName, which string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.said == nil {
		t.said = map[TableName]string{}
	}
	t.said[name] = which
}

// which asks the server which table a name is, where names are looked up by path now. It is empty for a view, a partition, a partitioned or
// foreign table, one that inherits, and one with rules: others may have the same rows.
func which(stmt *gorm.Statement, name TableName, path string) (which string, answered bool) {
	schema, asks := name.Schema, "which table"
	elsewhere := schema == "" && name.path != path
	if elsewhere {
		schema, asks = sqltext.OnlySchema(name.path), asks+name.path
	}
	if name.Name == "" || elsewhere && schema == "" {
		return "", true
	}
	question, about := whichTable(dialect.Of(stmt.DB), elsewhere, schema, name.Name)
	if question == "" {
		return "", true
	}
	known := statement.QuoteName(name.Name)
	if name.Schema != "" {
		known = statement.QuoteName(name.Schema) + "." + known
	}
	if said, is := Known(stmt, asks, known); is {
		return said.(string), true //nolint:forcetypeassert // learned below
	}
	rows, err := statement.Unprepared(stmt.ConnPool).QueryContext(stmt.Context, question, about...)
	if err != nil {
		return "", false
	}
	defer func() { _ = rows.Close() }()
	for n := 0; rows.Next(); n++ {
		if rows.Scan(&which) != nil {
			return "", false
		}
		if n > 0 {
			which = "" // names that differ in their letters only
		}
	}
	if rows.Err() != nil {
		return "", false
	}
	Learn(stmt, asks, known, which)
	return which, true
}

const whichOnPostgres = `SELECT c.oid::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = $1::text AND CASE WHEN $2::text = '' THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $2::text END
 AND c.relkind = 'r' AND NOT c.relispartition AND NOT c.relhasrules
 AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent))`

const noTemporary = ` AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_class t JOIN pg_catalog.pg_namespace s ON s.oid = t.relnamespace
 WHERE t.relname = $1::text AND pg_catalog.pg_table_is_visible(t.oid) AND s.nspname LIKE 'pg\_temp\_%')`

const whichOnMySQL = `SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables
WHERE table_name = ? AND table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_type = 'BASE TABLE' AND engine = 'InnoDB'`

const whichOnSQLite = `SELECT lower(name) FROM sqlite_master WHERE lower(name) = lower(?) AND type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
AND NOT EXISTS (SELECT 1 FROM sqlite_temp_master t WHERE lower(t.name) = lower(sqlite_master.name))`

// whichTable is the question, and what it is about. There is none where a server tells nothing of the name. The schema may be that where a name
// was looked up before, if no temporary table hid it.
func whichTable(d dialect.Dialect, hidden bool, schema, name string) (question string, about []any) {
	switch {
	case d.IsPostgres() && hidden:
		return whichOnPostgres + noTemporary, []any{name, schema}
	case d.IsPostgres():
		return whichOnPostgres, []any{name, schema}
	case d.IsMySQL():
		return whichOnMySQL, []any{name, schema}
	case d.IsSQLite() && schema == "":
		return whichOnSQLite, []any{name}
	}
	return "", nil
}
