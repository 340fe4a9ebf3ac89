package gormlock

import (
	"fmt"
	"regexp"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// admit refuses what would lock nothing, or not what was meant, before anything is executed.
func (l RowLockClause) admit(db *gorm.DB) error {
	stmt := db.Statement
	switch {
	case !isPostgres(db):
		return fmt.Errorf("%w, not %s: lock rows of %s", ErrNotPostgres, db.Name(), tableName(stmt))
	case stmt.SQL.Len() > 0:
		return fmt.Errorf("gormlock: a row lock is not put into raw SQL: write %v into it", l.strength)
	case !db.DryRun && transactionOf(stmt) == nil:
		return fmt.Errorf("%w: lock rows of %s", ErrNoTransaction, tableName(stmt))
	case db.DryRun && l.mayFail() && isSubQuery():
		err := fmt.Errorf("gormlock: %s: Try and Timeout do not reach a row lock in a sub-query", tableName(stmt))
		failSubQuery(stmt, err)
		return nil
	}
	return l.fits(stmt)
}

// fits refuses queries whose rows cannot be locked.
func (l RowLockClause) fits(stmt *gorm.Statement) error {
	if err := l.fitsRows(stmt); err != nil {
		return fmt.Errorf("gormlock: %s: %w", tableName(stmt), err)
	}
	if err := l.fitsTables(stmt); err != nil {
		return fmt.Errorf("gormlock: %s: %w", tableName(stmt), err)
	}
	return nil
}

// fitsRows refuses queries whose rows are no rows of a table.
func (l RowLockClause) fitsRows(stmt *gorm.Statement) error {
	const cure = "lock the rows in a sub-query (Where(\"id IN (?)\", …Select(\"id\"))), or with a Find before"
	_, grouped := stmt.Clauses["GROUP BY"]
	selected := selectedTexts(stmt)
	switch {
	case stmt.Distinct || selected.match(distinct):
		return fmt.Errorf("%v does not go with DISTINCT: %s", l.strength, cure)
	case grouped:
		return fmt.Errorf("%v does not go with GROUP BY: %s", l.strength, cure)
	case selected.match(aggregate):
		return fmt.Errorf("%v does not go with an aggregate such as count(*), which returns no row of the table: %s", l.strength, cure)
	case selected.match(window):
		return fmt.Errorf("%v does not go with a window function: %s", l.strength, cure)
	}
	return nil
}

// fitsTables refuses tables that the query does not have, and the side of an outer join that may have no row.
func (l RowLockClause) fitsTables(stmt *gorm.Statement) error {
	if len(l.of) == 0 && stmt.TableExpr == nil && !joined(stmt) || len(l.of) == 1 && l.of[0] == ownName(stmt) && !joined(stmt) {
		return nil
	}
	tables := tablesOf(stmt)
	if len(l.of) == 0 {
		if stmt.Table == "" && joined(stmt) {
			return fmt.Errorf("%v with joins needs Of: the query's own table has no name", l.strength)
		}
		if tables.ownIsOuter {
			return fmt.Errorf("%v does not go with the table's own side of a RIGHT or FULL JOIN, where rows may be missing: use a LEFT JOIN, or Of the other tables", l.strength)
		}
		return nil
	}
	own := ownName(stmt)
	for _, name := range l.of {
		switch {
		case !tables.known(name):
			return fmt.Errorf("Of(%q): the query has no table of that name, it has %s", name, strings.Join(tables.names, ", "))
		case name != own && tables.outer[name], name == own && tables.ownIsOuter:
			return fmt.Errorf("Of(%q): %v does not go with the outer side of a join, where rows may be missing: use InnerJoins, or INNER JOIN", name, l.strength)
		}
	}
	return nil
}

// queryTables are the names that a query gives to its tables, as far as can be seen without parsing SQL.
type queryTables struct {
	names      []string
	raw        map[string]bool // words of raw SQL: tables, aliases and more
	outer      map[string]bool // tables whose rows may be missing
	ownIsOuter bool
}

func tablesOf(stmt *gorm.Statement) *queryTables {
	t := &queryTables{raw: map[string]bool{}, outer: map[string]bool{}}
	if own := ownName(stmt); own != "" {
		t.names = append(t.names, own)
	}
	if stmt.TableExpr != nil {
		t.addRaw(stmt.TableExpr.SQL)
	}
	for _, join := range stmt.Joins {
		alias, isRelation := relationAlias(stmt, join.Name, join.Alias)
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
		t.add(nameOf(table), "")
	}
	for _, join := range from.Joins {
		if raw, ok := join.Expression.(clause.Expr); ok {
			t.addRaw(raw.SQL)
			continue
		}
		t.add(nameOf(join.Table), join.Type)
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
	for _, word := range identifier.FindAllString(sql, -1) {
		word = folded(word)
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

// relationAlias is the name under which GORM joins an association.
func relationAlias(stmt *gorm.Statement, name, alias string) (string, bool) {
	if stmt.Schema == nil {
		return "", false
	}
	relations := stmt.Schema.Relationships.Relations
	path := strings.Split(name, ".")
	for _, step := range path {
		relation, ok := relations[step]
		if !ok {
			return "", false
		}
		relations = relation.FieldSchema.Relationships.Relations
	}
	if alias == "" {
		alias = strings.Join(path, "__")
	}
	return alias, true
}

// joined reports whether the query has more tables than its own.
func joined(stmt *gorm.Statement) bool {
	from, _ := stmt.Clauses["FROM"].Expression.(clause.From)
	return len(stmt.Joins) > 0 || len(from.Joins) > 0
}

func nameOf(table clause.Table) string {
	if table.Alias != "" {
		return table.Alias
	}
	return table.Name
}

// ownName is what the server calls the query's own table: an alias that GORM does not see in a text too, and one that is
// not quoted there as the server folds it.
func ownName(stmt *gorm.Statement) string {
	if stmt.TableExpr == nil {
		return stmt.Table
	}
	if found := namedAs.FindStringSubmatch(stmt.TableExpr.SQL); found != nil {
		return folded(found[1])
	}
	if strings.HasSuffix(stmt.TableExpr.SQL, stmt.Quote(stmt.Table)) {
		return stmt.Table
	}
	return strings.ToLower(stmt.Table)
}

// folded is the name that the server makes of an identifier in a text.
func folded(identifier string) string {
	if strings.HasPrefix(identifier, `"`) {
		return strings.ReplaceAll(identifier[1:len(identifier)-1], `""`, `"`)
	}
	return strings.ToLower(identifier)
}

// tableName names the statement's table for people.
func tableName(stmt *gorm.Statement) string {
	switch {
	case stmt.Schema != nil && stmt.TableExpr == nil:
		return stmt.Schema.Table
	case stmt.Table != "":
		return stmt.Table
	default:
		return "query"
	}
}

// texts are pieces of SQL without what is in quotes or in sub-queries.
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

	identifier = regexp.MustCompile(`"(?:[^"]|"")*"|[A-Za-z_][\w$]*`)
	namedAs    = regexp.MustCompile(`(?i)^\s*(?:[\w$.]|"(?:[^"]|"")*")+\s+(?:as\s+)?("(?:[^"]|"")*"|[a-z_][\w$]*)\s*$`)
	literal    = regexp.MustCompile(`'(?:[^']|'')*'`)
	subquery   = regexp.MustCompile(`(?i)\(\s*(select|with|values)\b`)
)

// topLevel is the text without its string literals and without what stands in its sub-queries.
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
