package statement

import (
	"regexp"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Aliased reports whether the query's own table is more than a name, so that an UPDATE could not repeat it.
func Aliased(stmt *gorm.Statement) bool {
	if stmt.TableExpr == nil {
		return false
	}
	name := stmt.Quote(clause.Table{Name: stmt.Table})
	return len(stmt.TableExpr.Vars) > 0 || stmt.TableExpr.SQL != name && !strings.HasSuffix(stmt.TableExpr.SQL, "."+name)
}

// OwnTable is the table of a statement, with its schema.
var OwnTable any = clause.Table{Name: clause.CurrentTable}

// SameTable gives a statement the table of another one, where the caller may have named it.
func SameTable(stmt, as *gorm.Statement) { stmt.Table, stmt.TableExpr = as.Table, as.TableExpr }

// Quoted is a name in the dialect's quotes.
func Quoted(stmt *gorm.Statement, table, name string) string {
	var b strings.Builder
	stmt.QuoteTo(&b, clause.Column{Table: table, Name: name})
	return b.String()
}

// NameInStatement is a table's name inside of a statement: without the schema.
func NameInStatement(table string) string {
	if parts := strings.Split(table, "."); len(parts) == 2 {
		return parts[1]
	}
	return table
}

// RelationAlias is the name under which GORM joins an association.
func RelationAlias(stmt *gorm.Statement, name, alias string) (string, bool) {
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

// Joined reports whether the query has more tables than its own.
func Joined(stmt *gorm.Statement) bool {
	from, _ := stmt.Clauses["FROM"].Expression.(clause.From)
	return len(stmt.Joins) > 0 || len(from.Joins) > 0
}

// NameOf returns what a query calls a table: its alias, or its name.
func NameOf(table clause.Table) string {
	if table.Alias != "" {
		return table.Alias
	}
	return table.Name
}

// OwnName is the name of the query's own table for the server. It may be an alias in a text, which GORM does not see. If it is
// not quoted there, it is folded as the server does.
func OwnName(stmt *gorm.Statement) string {
	if stmt.TableExpr == nil {
		return stmt.Table
	}
	if found := namedAs.FindStringSubmatch(stmt.TableExpr.SQL); found != nil {
		return Folded(found[1])
	}
	if strings.HasSuffix(stmt.TableExpr.SQL, stmt.Quote(stmt.Table)) {
		return stmt.Table
	}
	return strings.ToLower(stmt.Table)
}

// Folded is the name that an identifier in a text means to the server.
func Folded(identifier string) string {
	if strings.HasPrefix(identifier, `"`) {
		return strings.ReplaceAll(identifier[1:len(identifier)-1], `""`, `"`)
	}
	return strings.ToLower(identifier)
}

// NameInSQL is the name of the statement's table as SQL, without an alias. It is empty if the statement has
// something other than a table.
func NameInSQL(stmt *gorm.Statement) string {
	if stmt.TableExpr == nil {
		return stmt.Quote(stmt.Table)
	}
	name := tableNamed.FindString(stmt.TableExpr.SQL)
	if len(stmt.TableExpr.Vars) > 0 || name != stmt.TableExpr.SQL && !namedAs.MatchString(stmt.TableExpr.SQL) {
		return ""
	}
	return name
}

// TableName names the statement's table for people: with its schema, and never by the alias that a statement has for it.
func TableName(stmt *gorm.Statement) string {
	named := ""
	if stmt.TableExpr != nil {
		named = tableNamed.FindString(stmt.TableExpr.SQL)
	}
	switch {
	case named != "":
		return unquoted.Replace(named)
	case stmt.Schema != nil:
		return stmt.Schema.Table
	case stmt.Table != "":
		return stmt.Table
	default:
		return "query"
	}
}

var (
	// Identifier finds a name in a text, quoted or not.
	Identifier = regexp.MustCompile(`"(?:[^"]|"")*"|[A-Za-z_][\w$]*`)
	tableNamed = regexp.MustCompile("^(?:\"[^\"]+\"|`[^`]+`|[A-Za-z_][\\w$]*)(?:\\.(?:\"[^\"]+\"|`[^`]+`|[A-Za-z_][\\w$]*))?")
	unquoted   = strings.NewReplacer(`"`, "", "`", "")
	namedAs    = regexp.MustCompile(`(?i)^\s*(?:[\w$.]|"(?:[^"]|"")*")+\s+(?:as\s+)?("(?:[^"]|"")*"|[a-z_][\w$]*)\s*$`)
)

// QuoteName returns one identifier in quotes, whatever is in it.
func QuoteName(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// IsUsed reports, before a statement is built, whether its chain was executed before. GORM then leaves the number of rows in it, or a clause of
// its own in which the caller has put nothing.
func IsUsed(db *gorm.DB) bool {
	if clauses := db.Statement.Clauses; db.RowsAffected == 0 && len(clauses) > 0 {
		from, is := clauses["FROM"].Expression.(clause.From)
		return is && len(from.Tables) == 0 && len(from.Joins) == 0 || clauses["INSERT"].Expression == clause.Expression(clause.Insert{}) ||
			clauses["UPDATE"].Expression == clause.Expression(clause.Update{}) || clauses["DELETE"].Expression == clause.Expression(clause.Delete{})
	}
	return db.RowsAffected != 0
}
