package claim

import (
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// relation is what the server says of the relation that a claim takes rows from. Where it does not answer, it is a table like most.
type relation struct {
	noXmin bool // its rows do not say which transaction wrote them: it is a view, or a table on another server
	judges bool // what looks like a condition on the row alone may not be one
}

// AskRelation asks for a relation. The server itself judges its rows by the query of a view, or by policies. What looks like an operator, a cast or a
// function of PostgreSQL's may be one that somebody made for this database, and read tables. Those of extensions are written in C, and read none.
var AskRelation = `SELECT c.relkind NOT IN ('r','p','m'), c.relkind NOT IN ('r','p','m') OR c.relrowsecurity
 OR EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
 WHERE p.oid >= 16384 AND l.lanname NOT IN ('internal','c') AND (p.proname = ANY('{` + strings.Join(sqltext.RowWords(), ",") + `}') OR p.oid IN (
 SELECT oprcode::oid FROM pg_catalog.pg_operator UNION SELECT castfunc FROM pg_catalog.pg_cast UNION SELECT amproc FROM pg_catalog.pg_amproc)))
FROM pg_catalog.pg_class c WHERE c.oid = to_regclass($1)`

// relationOf is what the server has said of the statement's table. It holds for a while: see journal.Known.
func (*claim) relationOf(stmt *gorm.Statement) (said relation) {
	const asks = "what a claim takes rows from"
	table := statement.NameInSQL(stmt)
	if known, is := journal.Known(stmt, asks, table); is {
		return known.(relation) //nolint:forcetypeassert // learned below
	}
	if stmt.DryRun || table == "" || !dialect.Of(stmt.DB).UpdateReturns() {
		return said
	}
	rows, err := statement.Unprepared(stmt.ConnPool).QueryContext(stmt.Context, AskRelation, table)
	if err != nil {
		return relation{}
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() || rows.Scan(&said.noXmin, &said.judges) != nil || rows.Err() != nil {
		return relation{}
	}
	journal.Learn(stmt, asks, table, said)
	return said
}
