package rowlock

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// admit refuses, before anything is executed, a lock that would lock nothing, or other rows than the caller means.
func (l Lock) admit(db *gorm.DB) error {
	stmt := db.Statement
	switch {
	case !dialect.Of(db).LocksRows():
		return fmt.Errorf("%w, not %s: lock rows of %s", fault.ErrNotPostgres, db.Name(), statement.TableName(stmt))
	case !slices.Contains(stmt.BuildClauses, l.Name()):
		return notSent(stmt)
	case stmt.SQL.Len() > 0:
		return fmt.Errorf("gormlock: a row lock cannot be added to raw SQL: write %v into it", l.Strength)
	case !db.DryRun && statement.Transaction(stmt) == nil:
		return fmt.Errorf("%w: lock rows of %s", fault.ErrNoTransaction, statement.TableName(stmt))
	case l.Skip && (statement.InFirstOrCreate() || statement.InFirstOrInit()):
		return fmt.Errorf("gormlock: %s: FirstOrCreate and FirstOrInit take a row that SkipLocked leaves out for one that is not there, and make a second one: use Try, or a lock that waits", statement.TableName(stmt))
	case db.DryRun && l.mayFail() && statement.InSubQuery():
		err := fmt.Errorf("gormlock: %s: Try and Timeout do not reach a row lock in a sub-query", statement.TableName(stmt))
		statement.FailSubQuery(stmt, err)
		return nil
	}
	if err := l.fitsMySQL(stmt); err != nil {
		return err
	}
	if err := l.Fits(stmt); err != nil {
		return err
	}
	if err := l.fitsPreloaded(stmt); err != nil {
		return err
	}
	// A dry run matters only for a sub-query, and GORM drops its error. Outside of a transaction, asking the server would need a
	// second connection beside the one of the outer statement.
	switch outside := statement.Transaction(stmt) == nil; {
	case db.DryRun && !statement.InSubQuery():
	case outside:
		mustBeHeld(stmt)
	default:
		l.mustReach(stmt)
	}
	return nil
}

// Fits refuses queries whose rows cannot be locked.
func (l Lock) Fits(stmt *gorm.Statement) error {
	if err := l.fitsRows(stmt); err != nil {
		return fmt.Errorf("gormlock: %s: %w", statement.TableName(stmt), err)
	}
	if err := l.fitsTables(stmt); err != nil {
		return fmt.Errorf("gormlock: %s: %w", statement.TableName(stmt), err)
	}
	return nil
}

// fitsRows refuses queries whose result rows are not rows of a table.
func (l Lock) fitsRows(stmt *gorm.Statement) error {
	const cure = "lock the rows in a sub-query (Where(\"id IN (?)\", …Select(\"id\"))), or with a Find before"
	_, grouped := stmt.Clauses["GROUP BY"]
	selected := selectedTexts(stmt)
	switch {
	case stmt.Distinct || selected.match(distinct):
		return fmt.Errorf("%v is not allowed with DISTINCT: %s", l.Strength, cure)
	case grouped:
		return fmt.Errorf("%v is not allowed with GROUP BY: %s", l.Strength, cure)
	case selected.match(aggregate):
		return fmt.Errorf("%v is not allowed with an aggregate such as count(*), which returns no row of the table: %s", l.Strength, cure)
	case selected.match(window):
		return fmt.Errorf("%v is not allowed with a window function: %s", l.Strength, cure)
	}
	return nil
}

// fitsTables refuses tables that are not in the query, and the side of an outer join that may have no row.
func (l Lock) fitsTables(stmt *gorm.Statement) error {
	if len(l.Of) == 0 && stmt.TableExpr == nil && !statement.Joined(stmt) || len(l.Of) == 1 && l.Of[0] == statement.OwnName(stmt) && !statement.Joined(stmt) {
		return nil
	}
	tables := tablesOf(stmt)
	if len(l.Of) == 0 {
		if stmt.Table == "" && statement.Joined(stmt) {
			return fmt.Errorf("%v with joins needs Of, because the query's own table has no name", l.Strength)
		}
		if tables.ownIsOuter {
			return fmt.Errorf("%v is not allowed on the side of a RIGHT or FULL JOIN where rows may be missing, which is the query's own table: use a LEFT JOIN, or Of with the other tables", l.Strength)
		}
		return nil
	}
	own := statement.OwnName(stmt)
	for _, name := range l.Of {
		switch {
		case !tables.known(name):
			return fmt.Errorf("Of(%q): the query has no table of that name, it has %s", name, strings.Join(tables.names, ", "))
		case name != own && tables.outer[name], name == own && tables.ownIsOuter:
			return fmt.Errorf("Of(%q): %v is not allowed on the outer side of a join, where rows may be missing: use InnerJoins, or INNER JOIN", name, l.Strength)
		}
	}
	return nil
}

// queryTables are the names of tables in a query, as far as they can be found without a SQL parser.
type queryTables struct {
	names      []string
	raw        map[string]bool // words of raw SQL: tables, aliases and more
	outer      map[string]bool // tables whose rows may be missing
	ownIsOuter bool
}

func tablesOf(stmt *gorm.Statement) *queryTables {
	t := &queryTables{raw: map[string]bool{}, outer: map[string]bool{}}
	if own := statement.OwnName(stmt); own != "" {
		t.names = append(t.names, own)
	}
	if stmt.TableExpr != nil {
		t.addRaw(stmt.TableExpr.SQL)
	}
	for _, join := range stmt.Joins {
		alias, isRelation := statement.RelationAlias(stmt, join.Name, join.Alias)
		switch {
		case isRelation:
			t.add(alias, join.JoinType)
		case join.Expression != nil:
			t.add(join.Alias, join.JoinType)
		default:
			t.addRaw(join.Name)
		}
	}
	from, _ := stmt.Clauses["FROM"].Expression.(clause.From)
	for _, table := range from.Tables {
		t.add(statement.NameOf(table), "")
	}
	for _, join := range from.Joins {
		if raw, ok := join.Expression.(clause.Expr); ok {
			t.addRaw(raw.SQL)
			continue
		}
		t.add(statement.NameOf(join.Table), join.Type)
	}
	return t
}

func (t *queryTables) add(name string, join clause.JoinType) {
	if name == "" || name == clause.CurrentTable {
		return
	}
	t.names = append(t.names, name)
	t.outer[name] = join == clause.LeftJoin
	t.ownIsOuter = t.ownIsOuter || join == clause.RightJoin
}

func (t *queryTables) addRaw(sql string) {
	sql = topLevel(sql)
	left := leftJoin.MatchString(sql)
	for _, word := range statement.Identifier.FindAllString(sql, -1) {
		word = statement.Folded(word)
		t.raw[word] = true
		t.outer[word] = t.outer[word] || left
	}
	t.ownIsOuter = t.ownIsOuter || rightJoin.MatchString(sql)
}

func (t *queryTables) known(name string) bool {
	for _, n := range t.names {
		if n == name {
			return true
		}
	}
	return t.raw[name]
}

// texts are pieces of SQL without quoted texts and sub-queries.
type texts []string

func (t texts) match(pattern *regexp.Regexp) bool {
	for _, text := range t {
		if strings.ContainsAny(text, " (") && pattern.MatchString(text) {
			return true
		}
	}
	return false
}

// selectedTexts are the columns that the query selects.
func selectedTexts(stmt *gorm.Statement) texts {
	var t texts
	for _, column := range stmt.Selects {
		t = append(t, topLevel(column))
	}
	switch e := stmt.Clauses["SELECT"].Expression.(type) {
	case clause.Expr:
		t = append(t, topLevel(e.SQL))
	case clause.NamedExpr:
		t = append(t, topLevel(e.SQL))
	case clause.Select:
		for _, column := range e.Columns {
			if column.Raw {
				t = append(t, topLevel(column.Name))
			}
		}
		if e.Distinct {
			t = append(t, "DISTINCT ")
		}
	}
	return t
}

var (
	distinct  = regexp.MustCompile(`(?i)^\s*distinct\b`)
	aggregate = regexp.MustCompile(`(?i)\b(count|sum|avg|min|max|every|bool_(and|or)|bit_(and|or|xor)|(array|string|xml|range|jsonb?|jsonb?_object)_?agg|(stddev|var)(_pop|_samp)?|variance|corr|mode|percentile_(cont|disc))\s*\(`)
	window    = regexp.MustCompile(`(?i)\)\s*over\s*(\(|\s["\w])`)
	leftJoin  = regexp.MustCompile(`(?i)\b(left|full)\s+(outer\s+)?join\b`)
	rightJoin = regexp.MustCompile(`(?i)\b(right|full)\s+(outer\s+)?join\b`)

	literal  = regexp.MustCompile(`'(?:[^']|'')*'`)
	subquery = regexp.MustCompile(`(?i)\(\s*(select|with|values)\b`)
)

// topLevel returns the text without string literals and without the contents of sub-queries.
func topLevel(sql string) string {
	if !strings.ContainsAny(sql, "('") {
		return sql
	}
	sql = literal.ReplaceAllString(sql, "''")
	for {
		start := subquery.FindStringIndex(sql)
		if start == nil {
			return sql
		}
		depth, end := 0, len(sql)
		for i := start[0]; i < len(sql); i++ {
			if sql[i] == '(' {
				depth++
			} else if sql[i] == ')' {
				if depth--; depth == 0 {
					end = i + 1
					break
				}
			}
		}
		sql = sql[:start[0]] + "()" + sql[end:]
	}
}
