package claim

import (
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/pgarray"
	"github.com/gormlock/gormlock/internal/rowlock"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// relation is what the server says of the relation that a claim takes rows from. Where it does not answer, it is a table like most.
type relation struct {
	noXmin   bool // its rows do not say which transaction wrote them: it is a view, or a table on another server
	judges   bool // what looks like a condition on the row alone may not be one
	nullable bool // the model's key may be NULL
	melts    bool // the model's key has an array or a row in it
	vetoes   bool // a trigger may leave a row as it is
}

// form is how the claims of the relation are written.
func (r relation) form(told seen) form { return form{told: told, melts: r.melts, vetoed: r.vetoes} }

// AskRelation asks for a relation. The server itself judges its rows by the query of a view, or by policies. What looks like an operator, a cast or a
// function of PostgreSQL's may be one that somebody made for this database, and read tables. Those of extensions are written in C, and read none. The
// model's key is $2. Any BEFORE UPDATE trigger may leave a row as it is: what it does shows only when it runs.
// In a statement that a rule rewrites, the server takes no update within WITH, as newClaimSQL writes it where a trigger vetoes.
var AskRelation = rowlock.Behind + `SELECT c.relkind NOT IN ('r','p','m'), c.relkind NOT IN ('r','p','m') OR c.relrowsecurity
 OR EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
 WHERE p.oid >= 16384 AND l.lanname NOT IN ('internal','c') AND (p.proname = ANY('{` + strings.Join(sqltext.RowWords(), ",") + `}') OR p.oid IN (
 SELECT oprcode::oid FROM pg_catalog.pg_operator UNION SELECT castfunc FROM pg_catalog.pg_cast UNION SELECT amproc FROM pg_catalog.pg_amproc))),
 coalesce(key.nullable, false), coalesce(key.melts, false),
 EXISTS (SELECT FROM read JOIN pg_catalog.pg_trigger t ON t.tgrelid = read.oid WHERE t.tgtype & 19 = 19 AND t.tgenabled <> 'D')
 AND NOT EXISTS (SELECT FROM read JOIN pg_catalog.pg_rewrite r ON r.ev_class = read.oid WHERE r.ev_type = '2')
FROM pg_catalog.pg_class c CROSS JOIN LATERAL (
 SELECT bool_or(NOT (a.attnotnull OR t.typnotnull)) AS nullable, bool_or(t.typcategory IN ('A', 'C')) AS melts
 FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid WHERE a.attrelid = c.oid AND a.attname = ANY($2::text::text[])) AS key
WHERE c.oid = to_regclass($1)`

// relationOf is what the server has said of the statement's table. It holds for a while: see journal.Known.
func (c *claim) relationOf(stmt *gorm.Statement) (said relation) {
	asks, table := claimedModelOf(stmt.DB, c.model).asks, statement.NameInSQL(stmt)
	if known, is := journal.Known(stmt, asks, table); is {
		return known.(relation) //nolint:forcetypeassert // learned below
	}
	if stmt.DryRun || table == "" || !dialect.Of(stmt.DB).UpdateReturns() {
		return said
	}
	var key pgarray.Array
	for _, name := range c.model.Schema.PrimaryFieldDBNames {
		key.Text(name)
	}
	rows, err := statement.Unprepared(stmt.ConnPool).QueryContext(stmt.Context, AskRelation, table, key.String())
	if err != nil {
		return relation{}
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() || rows.Scan(&said.noXmin, &said.judges, &said.nullable, &said.melts, &said.vetoes) != nil || rows.Err() != nil {
		return relation{}
	}
	journal.Learn(stmt, asks, table, said)
	return said
}
