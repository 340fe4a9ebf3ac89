package rowlock

import (
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// Behind is SQL that finds the relation $1 and all relations under it: those that a view reads, and the partitions and children of a table.
const Behind = `WITH RECURSIVE read AS (
 SELECT to_regclass($1)::oid AS oid
 UNION SELECT behind.oid FROM read CROSS JOIN LATERAL (
 SELECT d.refobjid AS oid FROM pg_catalog.pg_rewrite r
 JOIN pg_catalog.pg_depend d ON d.objid = r.oid AND d.classid = 'pg_catalog.pg_rewrite'::regclass
 AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.deptype = 'n'
 WHERE r.ev_class = read.oid AND r.ev_type = '1'
 UNION ALL SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = read.oid) behind)
`

// AskLockable asks whether a relation exists, and why its rows cannot be locked. Through a view, PostgreSQL locks the rows of
// the tables that the view's query reads, even if it joins them. If the view computes its rows, PostgreSQL locks nothing, and reports
// no error. A view that can be written without a rule or trigger of its own computes none. For any other view this looks at its stored
// query, and at the views that it reads. Rows of a foreign table are only locked if its wrapper sends a lock, and most do not. The text
// calls no function that may write, so it does not count as a write of the transaction.
const AskLockable = Behind + `SELECT bool_or(c.oid IS NOT NULL), COALESCE(min(CASE
 WHEN c.relkind = 'f' AND NOT EXISTS (SELECT FROM pg_catalog.pg_foreign_table f JOIN pg_catalog.pg_foreign_server s ON s.oid = f.ftserver
 JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw JOIN pg_catalog.pg_proc h ON h.oid = w.fdwhandler
 WHERE f.ftrelid = c.oid AND h.proname IN ('postgres_fdw_handler', 'oracle_fdw_handler'))
 THEN 'has rows in a foreign table whose wrapper is not known to lock any: lock them on their own server'
 WHEN c.relkind <> 'v' OR c.oid IS NULL THEN NULL
 WHEN EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND t.tgtype & 64 <> 0 AND t.tgtype & 24 <> 0)
 THEN 'has an INSTEAD OF trigger, which writes what it likes: lock and write the rows of the tables behind it'
 WHEN EXISTS (SELECT FROM (VALUES ('2', 4), ('3', 8), ('4', 16)) AS event WHERE pg_catalog.pg_relation_is_updatable(c.oid, false) & event.column2 <> 0
 AND NOT EXISTS (SELECT FROM pg_catalog.pg_rewrite i WHERE i.ev_class = c.oid AND i.ev_type = event.column1::"char" AND i.is_instead)) THEN NULL
 WHEN r.ev_action::text ~ ':(hasAggs|hasWindowFuncs|hasTargetSRFs) true|:(cteList|groupClause|groupingSets|havingQual|distinctClause|setOperations) [^< ]|:rtekind [^012]'
 OR NOT EXISTS (SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class b ON b.oid = d.refobjid AND d.refclassid = 'pg_catalog.pg_class'::regclass
 WHERE d.objid = r.oid AND d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.deptype = 'n' AND b.oid <> c.oid)
 THEN 'computes its rows (UNION, WITH, GROUP BY, DISTINCT, VALUES or a function), so that PostgreSQL locks none: lock those of the tables behind it'
 END), ''), COALESCE(bool_or(c.relkind = 'f'), false)
FROM read LEFT JOIN pg_catalog.pg_class c ON c.oid = read.oid
LEFT JOIN pg_catalog.pg_rewrite r ON r.ev_class = c.oid AND r.ev_type = '1'`

// AskTableRows asks whether a function returns rows of a table. A row lock on a call of the function does not lock them.
const AskTableRows = theFunction + ` JOIN pg_catalog.pg_type t ON t.oid = p.prorettype JOIN pg_catalog.pg_class c ON c.oid = t.typrelid AND c.relkind <> 'c')
 THEN 'is a function that returns rows of a table, and PostgreSQL locks none of them: lock those of the table' ELSE '' END, false`

// AskReads asks whether a function may read tables. PostgreSQL's own only read their arguments, and immutable ones read none. All others may.
const AskReads = theFunction + ` WHERE p.pronamespace <> 'pg_catalog'::regnamespace AND p.provolatile <> 'i')
 THEN 'is a function, beside which the query reads no rows, and PostgreSQL locks none of those that a function has read: lock the rows of their tables, or select columns of what is locked too'
 ELSE '' END, false`

const theFunction = `SELECT true, CASE WHEN EXISTS (SELECT FROM (SELECT parse_ident($1) AS path) given
 JOIN pg_catalog.pg_proc p ON p.proname = path[cardinality(path)] AND CASE WHEN cardinality(path) = 1 THEN pg_catalog.pg_function_is_visible(p.oid)
 ELSE p.pronamespace = to_regnamespace(quote_ident(path[cardinality(path) - 1])) END`

// mustBeLockable refuses a relation if no lock reaches its rows. It also refuses Try, Skip and Timeout for a foreign table: the wrapper sends
// neither NOWAIT nor SKIP LOCKED to the other server, and lock_timeout does not end a wait there.
func (l Lock) mustBeLockable(stmt *gorm.Statement, relation string) error {
	if dialect.Of(stmt.DB).IsMySQL() {
		_, err := mustAnswer(stmt, "", relation, askEngine)
		return err
	}
	foreign, err := mustAnswer(stmt, AskLockable, relation, ask(AskLockable))
	if err == nil && foreign && (l.Try || l.Skip || l.Timeout > 0) {
		err = fmt.Errorf("%s has rows in a foreign table, whose server is not told of Try, Skip, Timeout or Claim: use none of them, or lock the rows on their own server", relation)
	}
	return err
}

func mustComputeRows(stmt *gorm.Statement, question string, functions []string) error {
	if dialect.Of(stmt.DB).IsMySQL() { // all functions of it compute their rows
		return nil
	}
	for _, function := range functions {
		if _, err := mustAnswer(stmt, question, function, ask(question)); err != nil {
			return err
		}
	}
	return nil
}

// answer is what the server says about a name.
type answer struct {
	there   bool
	why     string // its rows cannot be locked; empty: they can
	foreign bool   // some are on another server
}

// mustAnswer asks the server about a name, and refuses it if its rows cannot be locked. The answer is kept for a while: see journal.Known.
func mustAnswer(stmt *gorm.Statement, question, name string, ask func(*gorm.Statement, string) (answer, error)) (foreign bool, err error) {
	if known, is := journal.Known(stmt, question, name); is {
		return known.(bool), nil //nolint:forcetypeassert // learned below
	}
	said, err := ask(stmt, name)
	switch {
	case sqlstate.Of(err) != "":
		return false, fmt.Errorf("look whether the rows of %s can be locked: %w", name, err)
	case err != nil: // not an error of the server: the query itself will get it too
		return false, nil //nolint:nilerr // see above
	}
	if said.why != "" {
		return false, unreached("%s %s", name, said.why)
	}
	if said.there { // otherwise the query returns the error
		journal.Learn(stmt, question, name, said.foreign)
	}
	return said.foreign, nil
}

// ask asks the server, on the statement's own connection.
func ask(question string) func(stmt *gorm.Statement, name string) (answer, error) {
	return func(stmt *gorm.Statement, name string) (said answer, err error) {
		rows, err := statement.Unprepared(stmt.ConnPool).QueryContext(stmt.Context, question, name)
		if err != nil {
			return said, err
		}
		defer func() { _ = rows.Close() }()
		if rows.Next() {
			err = rows.Scan(&said.there, &said.why, &said.foreign)
		}
		return said, errors.Join(err, rows.Err())
	}
}
