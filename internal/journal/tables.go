package journal

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// TableName is a name that statements use for a table, with everything that decides which table it is.
type TableName struct {
	statement.Relation
	at     lookup // where names are looked up
	remade int    // how many statements before may have made or renamed tables
}

// IsSame reports whether two names are certain to mean the same table.
func (n TableName) IsSame(other TableName) bool {
	return n.Relation == other.Relation && n.at == other.at && n.remade == other.remade
}

// Tables are the names of tables that a transaction has met, and the server's answers about them. One table can have several names, for
// example those of its views and partitions. So gormlock asks the server which table a name is, but only if a transaction has two names for
// the table of one model, and writes.
type Tables struct {
	mu   sync.Mutex
	met  []metTable
	said map[TableName]string // which table a name is; empty: its rows may be reached by another name too
}

type metTable struct {
	of   reflect.Type
	name TableName
}

// Tables returns the Tables of the transaction, and a TableName of this moment in which the caller sets the name. Outside of transactions both
// are empty.
func (j *journal) Tables() (tables *Tables, now TableName) {
	if j == nil {
		return nil, TableName{}
	}
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if j.naming.tables == nil {
		j.naming.tables = &Tables{}
	}
	return j.naming.tables, TableName{at: j.past.names, remade: j.naming.remade}
}

// Meet notes that a statement uses a model with this table.
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

// Which identifies the table that a name means, so that names can be compared. It is empty if that is not certain.
func (t *Tables) Which(name TableName) string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said[name]
}

// Ask asks the server which tables the names of a model are, if there are several. It is called before a statement writes: after a failed
// statement the server answers no more, and after a rename it knows only the new name. The answers hold for this transaction only: another
// connection may have a temporary table of that name, and another program may make the table a partition before the next transaction.
func (t *Tables) Ask(stmt *gorm.Statement, of reflect.Type, now TableName) {
	if t == nil || now.remade > 0 || stmt.DryRun || stmt.Error != nil {
		return
	}
	for _, one := range which(stmt, t.unsaid(of, dialect.Of(stmt.DB), now.at)) {
		t.say(one.name, one.which)
	}
}

// unsaid are the questions about names of a model that the server has not answered yet. There are none if fewer than two names can have an
// answer, because there would be nothing to compare.
func (t *Tables) unsaid(of reflect.Type, d dialect.Dialect, at lookup) (questions []question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	told := 0
	for _, one := range t.met {
		if one.of != of {
			continue
		}
		which, said := t.said[one.name]
		if said && which != "" {
			told++
		}
		if asks := about(d, one.name, at); !said && asks.text != "" {
			questions = append(questions, asks)
		}
	}
	if told+len(questions) < 2 {
		return nil
	}
	return questions
}

func (t *Tables) say(name TableName, which string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.said == nil {
		t.said = map[TableName]string{}
	}
	t.said[name] = which
}

// question is a question about a name, with its answer.
type question struct {
	name  TableName
	text  string // empty: the server cannot be asked about such a name
	args  []any
	which string
}

// about is the question which table a name is, if at says where names are looked up now. The answer is empty for a view, a partition, a
// partitioned or foreign table, a table with inheritance, and one with rules: other names may reach the same rows.
func about(d dialect.Dialect, name TableName, at lookup) question {
	schema, elsewhere := name.Schema, name.Schema == "" && name.at != at
	if elsewhere {
		schema = sqltext.OnlySchema(name.at.path)
	}
	if name.Name == "" || elsewhere && schema == "" {
		return question{}
	}
	text, args := whichTable(d, elsewhere, schema, name.Name)
	return question{name: name, text: text, args: args}
}

// which asks the server all questions at once. It returns none if the server does not answer.
func which(stmt *gorm.Statement, questions []question) []question {
	if len(questions) == 0 {
		return nil
	}
	texts, args := make([]string, len(questions)), []any(nil)
	for i, one := range questions {
		places := strings.NewReplacer("$1", "$"+strconv.Itoa(len(args)+1), "$2", "$"+strconv.Itoa(len(args)+2))
		texts[i] = "SELECT " + strconv.Itoa(i) + ", " + places.Replace(one.text)
		args = append(args, one.args...)
	}
	rows, err := statement.Unprepared(stmt.ConnPool).QueryContext(stmt.Context, strings.Join(texts, "\nUNION ALL "), args...)
	if err != nil {
		return nil
	}
	defer func() { _ = rows.Close() }()
	found := make([]int, len(questions))
	for rows.Next() {
		var i int
		var which string
		if rows.Scan(&i, &which) != nil {
			return nil
		}
		found[i]++
		questions[i].which = which
	}
	for i, n := range found {
		if n > 1 {
			questions[i].which = "" // several tables, with names that differ only in upper and lower case
		}
	}
	if rows.Err() != nil {
		return nil
	}
	return questions
}

const whichOnPostgres = `c.oid::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = $1::text AND CASE WHEN $2::text = '' THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $2::text END
 AND c.relkind = 'r' AND NOT c.relispartition AND NOT c.relhasrules
 AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent))`

const noTemporary = ` AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_class t JOIN pg_catalog.pg_namespace s ON s.oid = t.relnamespace
 WHERE t.relname = $1::text AND pg_catalog.pg_table_is_visible(t.oid) AND s.nspname LIKE 'pg\_temp\_%')`

const whichOnMySQL = `CONCAT(table_schema, '.', table_name) FROM information_schema.tables
WHERE table_name = ? AND table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_type = 'BASE TABLE' AND engine = 'InnoDB'`

const whichOnSQLite = `lower(name) FROM sqlite_master WHERE lower(name) = lower(?) AND type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'
AND NOT EXISTS (SELECT 1 FROM sqlite_temp_master t WHERE lower(t.name) = lower(sqlite_master.name))`

// whichTable is the question without its SELECT, and its arguments. It is empty if the server cannot be asked about the name. hidden says that
// the schema is where the name was looked up before: then a temporary table must not hide it.
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
