package statement

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Relation is what a statement has as its table.
type Relation struct {
	Schema string // empty: the name has none
	Name   string
	Only   bool   // without the tables that inherit from it
	Text   string // if it is not just a name; then Name is empty
}

// RelationOf is the relation with a name that GORM quotes.
func RelationOf(name string) Relation {
	schema, table, qualified := strings.Cut(name, ".")
	switch {
	case !qualified:
		return Relation{Name: name}
	case strings.Contains(table, "."):
		return Relation{Text: name}
	}
	return Relation{Schema: schema, Name: table}
}

// RelationIn is the relation of a statement, without its alias. own is the relation of the model: it is used if the statement does not name another
// one. GORM does not quote a text with a blank, so PostgreSQL folds the names in it to lower case.
func RelationIn(stmt *gorm.Statement, own Relation) Relation {
	if other, is := relationInPlace(stmt); is {
		return other
	}
	switch {
	case stmt.TableExpr == nil && (stmt.Table == "" || stmt.Table == stmt.Schema.Table):
		return own
	case stmt.TableExpr == nil:
		return RelationOf(stmt.Table)
	}
	text := stmt.TableExpr.SQL
	found := relation.FindStringSubmatch(text)
	switch postgres := IsPostgres(stmt.DB); {
	case len(stmt.TableExpr.Vars) > 0:
		text += fmt.Sprint(stmt.TableExpr.Vars...)
	case found == nil, found[1] != "" && !postgres:
	case found[3] == "":
		return Relation{Name: identifier(found[2], postgres), Only: found[1] != ""}
	default:
		return Relation{Schema: identifier(found[2], postgres), Name: identifier(found[3], postgres), Only: found[1] != ""}
	}
	return Relation{Text: text}
}

// relationInPlace is what a query reads instead of its own table: raw SQL of the caller, or a FROM clause.
func relationInPlace(stmt *gorm.Statement) (other Relation, is bool) {
	from, has := stmt.Clauses["FROM"]
	tables, plain := from.Expression.(clause.From)
	switch {
	case !has && stmt.SQL.Len() > 0 && !isBuilt(stmt):
		return Relation{Text: stmt.SQL.String()}, true
	case !has || plain && len(tables.Tables) == 0 || from.Expression == nil:
		return Relation{}, false
	case plain && len(tables.Tables) == 1 && tables.Tables[0].Name == clause.CurrentTable:
		return Relation{}, false
	case plain && len(tables.Tables) == 1 && !tables.Tables[0].Raw:
		return RelationOf(tables.Tables[0].Name), true
	}
	return Relation{Text: fmt.Sprint(from.Expression)}, true
}

// isBuilt reports whether GORM has built the text of a statement that writes.
func isBuilt(stmt *gorm.Statement) bool {
	return slices.ContainsFunc([]string{"INSERT", "UPDATE", "DELETE"}, func(name string) bool { _, has := stmt.Clauses[name]; return has })
}

const oneName = "\"(?:[^\"]|\"\")+\"|`[^`]+`|[a-z_][\\w$]*"

var relation = regexp.MustCompile(`(?i)^\s*(only\s+)?(` + oneName + `)(?:\s*\.\s*(` + oneName + `))?(?:\s+(?:as\s+)?(?:` + oneName + `))?\s*$`)

// identifier is the name that an identifier in a text means.
func identifier(text string, folds bool) string {
	switch {
	case text[0] == '`':
		return text[1 : len(text)-1]
	case text[0] == '"' || folds:
		return Folded(text)
	}
	return text
}
