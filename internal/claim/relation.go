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

// relation is what the server says about the table or view that a claim takes rows from. If the server does not answer, the zero value stands for
// an ordinary table.
type relation struct {
	noXmin   bool // its rows have no xmin: it is a view, or a table on another server
	judges   bool // a condition that looks at the row only may read other tables all the same
	nullable bool // the model's key may be NULL
	melts    bool // the model's key contains an array or a composite type
	vetoes   bool // a trigger may leave a row as it is
}

// form says how claims of the relation are written.
func (r relation) form(told seen) form { return form{told: told, melts: r.melts, vetoed: r.vetoes} }

// AskRelation is the query for a relation. $1 is its name, $2 the columns of the model's key.
//
// It decides about judges like this: the query of a view and policies can read other tables. So can an operator, a cast or a function that was
// made in this database, even if it has the name of one of PostgreSQL's. Those of extensions are written in C, and read none.
//
// Any BEFORE UPDATE trigger counts as one that vetoes, because only its execution shows what it does. A table with update rules does not count: with
// such a rule the server accepts no update within WITH, and newClaimSQL would write one.
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

// relationOf is what the server says about the statement's table. The answer is kept for a while: see journal.Known.
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
