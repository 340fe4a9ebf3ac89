package rowlock

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// AskLockable asks whether a relation exists, and why its rows cannot be locked. Through a view PostgreSQL locks what
// its query reads from tables, even if it joins them. If the view computes its rows PostgreSQL locks nothing, without
// an error. So this reads the stored query of the view, and of the views that it reads. It calls nothing that may
// write, so it does not count as a write of the transaction.
const AskLockable = `WITH RECURSIVE read AS (
 SELECT to_regclass($1)::oid AS oid
 UNION SELECT d.refobjid FROM read
 JOIN pg_catalog.pg_rewrite r ON r.ev_class = read.oid AND r.ev_type = '1'
 JOIN pg_catalog.pg_depend d ON d.objid = r.oid AND d.classid = 'pg_catalog.pg_rewrite'::regclass
 AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.deptype = 'n')
SELECT bool_or(c.oid IS NOT NULL), COALESCE(min(CASE
 WHEN c.relkind <> 'v' OR c.oid IS NULL THEN NULL
 WHEN EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND t.tgtype & 64 <> 0 AND t.tgtype & 24 <> 0)
 THEN 'has an INSTEAD OF trigger, which writes what it likes: lock and write the rows of the tables behind it'
 WHEN pg_catalog.pg_relation_is_updatable(c.oid, false) & 4 <> 0 THEN NULL
 WHEN r.ev_action::text ~ ':(hasAggs|hasWindowFuncs|hasTargetSRFs) true|:(cteList|groupClause|groupingSets|havingQual|distinctClause|setOperations) [^< ]|:rtekind [^012]'
 OR NOT EXISTS (SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class b ON b.oid = d.refobjid AND d.refclassid = 'pg_catalog.pg_class'::regclass
 WHERE d.objid = r.oid AND d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.deptype = 'n' AND b.oid <> c.oid)
 THEN 'computes its rows (UNION, WITH, GROUP BY, DISTINCT, VALUES or a function), so that PostgreSQL locks none: lock those of the tables behind it'
 END), '')
FROM read LEFT JOIN pg_catalog.pg_class c ON c.oid = read.oid
LEFT JOIN pg_catalog.pg_rewrite r ON r.ev_class = c.oid AND r.ev_type = '1'`

// lockable is the key under which the plugin remembers that rows of a relation can be locked.
type lockable struct {
	database any // the dialector: a plugin may serve several
	relation string
}

// MustLock is the name of the note on a statement that a clause of GORM's own must lock the rows of its table.
const MustLock = "gormlock:must_lock"

// RefuseUnlockable refuses to lock the rows of the statement's own table where PostgreSQL would lock none.
func RefuseUnlockable(stmt *gorm.Statement) error { return Lock{}.refuseUnlockable(stmt) }

// refuseUnlockable refuses views through which PostgreSQL locks nothing. It asks the server once for each relation, on the
// statement's own connection.
func (l Lock) refuseUnlockable(stmt *gorm.Statement) error {
	for _, relation := range l.relations(stmt) {
		if err := mustBeLockable(stmt, relation); err != nil {
			return fmt.Errorf("gormlock: %s: %w", statement.TableName(stmt), err)
		}
	}
	return nil
}

func mustBeLockable(stmt *gorm.Statement, relation string) error {
	known, key := &install.Of(stmt.DB).Lockable, lockable{relation: relation}
	if reflect.TypeOf(stmt.Dialector).Comparable() {
		key.database = stmt.Dialector
	}
	if _, ok := known.Load(key); ok {
		return nil
	}
	ask := askLockable
	if dialect.Of(stmt.DB).IsMySQL() {
		ask = askEngine
	}
	there, why, err := ask(stmt, relation)
	switch {
	case sqlstate.Of(err) != "":
		return fmt.Errorf("look whether the rows of %s can be locked: %w", relation, err)
	case err != nil: // the error is not from the server: the query itself will get it too
		return nil //nolint:nilerr // see above
	}
	if why != "" {
		return fmt.Errorf("no row lock reaches its rows: %s %s", relation, why)
	}
	if there { // if not, the query returns the error
		known.Store(key, nil)
	}
	return nil
}

// askLockable asks the server, on the statement's own connection.
func askLockable(stmt *gorm.Statement, relation string) (there bool, why string, err error) {
	rows, err := statement.Unprepared(stmt.ConnPool).QueryContext(stmt.Context, AskLockable, relation)
	if err != nil {
		return false, "", err
	}
	defer func() { _ = rows.Close() }()
	if rows.Next() {
		err = rows.Scan(&there, &why)
	}
	return there, why, errors.Join(err, rows.Err())
}

// refuseUnlockableHere does the same in a sub-query, whose error GORM drops. Outside of a transaction the question would
// need a second connection, beside that of the outer statement.
func (l Lock) refuseUnlockableHere(stmt *gorm.Statement) {
	if statement.Transaction(stmt) == nil || !statement.InSubQuery() {
		return
	}
	if err := l.refuseUnlockable(stmt); err != nil {
		statement.FailSubQuery(stmt, err)
	}
}

// relations returns the quoted names of the relations whose rows the query locks, as far as they can be found without a
// parser for SQL.
func (l Lock) relations(stmt *gorm.Statement) []string {
	if len(l.Of) == 0 {
		return ownRelations(stmt)
	}
	var all []string
	for _, name := range l.Of {
		if name == statement.OwnName(stmt) {
			all = append(all, ownRelations(stmt)...)
			continue
		}
		all = append(all, joinedRelations(stmt, name)...)
	}
	return all
}

// ownRelations returns those of the query itself: the table of its model, or what Table and FROM name.
func ownRelations(stmt *gorm.Statement) []string {
	var all []string
	switch {
	case stmt.TableExpr != nil:
		for _, part := range strings.Split(topLevel(stmt.TableExpr.SQL), ",") {
			if found := relationAs.FindStringSubmatch(part); found != nil {
				all = append(all, found[1])
			}
		}
	case stmt.Table != "":
		all = append(all, stmt.Quote(clause.Table{Name: stmt.Table}))
	}
	from, _ := stmt.Clauses["FROM"].Expression.(clause.From)
	for _, table := range from.Tables {
		if !table.Raw && table.Name != "" && table.Name != clause.CurrentTable {
			all = append(all, stmt.Quote(clause.Table{Name: table.Name}))
		}
	}
	return all
}

// joinedRelations returns the relations to which a join gives this name.
func joinedRelations(stmt *gorm.Statement, name string) []string {
	var all []string
	raw := func(sql string) {
		for _, found := range joinAs.FindAllStringSubmatch(topLevel(sql), -1) {
			called := found[2]
			if called == "" || strings.EqualFold(called, "on") || strings.EqualFold(called, "using") {
				parts := statement.Identifier.FindAllString(found[1], -1)
				called = parts[len(parts)-1]
			}
			if statement.Folded(called) == name {
				all = append(all, found[1])
			}
		}
	}
	for _, join := range stmt.Joins {
		alias, isRelation := statement.RelationAlias(stmt, join.Name, join.Alias)
		switch {
		case isRelation && alias == name:
			related := stmt.Schema
			for _, step := range strings.Split(join.Name, ".") {
				related = related.Relationships.Relations[step].FieldSchema
			}
			all = append(all, stmt.Quote(clause.Table{Name: related.Table}))
		case !isRelation && join.Expression == nil:
			raw(join.Name)
		}
	}
	from, _ := stmt.Clauses["FROM"].Expression.(clause.From)
	for _, join := range from.Joins {
		if expr, ok := join.Expression.(clause.Expr); ok {
			raw(expr.SQL)
		} else if statement.NameOf(join.Table) == name {
			all = append(all, stmt.Quote(clause.Table{Name: join.Table.Name}))
		}
	}
	return all
}

const (
	identifier = "(?:[a-z_][\\w$]*|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`)"
	relation   = `(` + identifier + `(?:\.` + identifier + `)*)`
)

var (
	relationAs = regexp.MustCompile(`(?i)^\s*` + relation + `(?:\s+(?:as\s+)?` + identifier + `)?\s*$`)
	joinAs     = regexp.MustCompile(`(?i)(?:\bjoin|,)\s+` + relation + `(?:\s+(?:as\s+)?(` + identifier + `))?`)
)

// refuseGiven does the same for a statement with MustLock.
func refuseGiven(db *gorm.DB) {
	if _, must := db.Statement.Clauses[MustLock]; must && db.Error == nil && !db.DryRun && dialect.Of(db).LocksRows() {
		if err := RefuseUnlockable(db.Statement); err != nil {
			fault.Add(db, err)
		}
	}
}
