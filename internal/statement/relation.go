package statement

import (
	"fmt"
	"regexp"
	"strings"

	"gorm.io/gorm"
)

// Relation is what a statement has in the place of its table.
type Relation struct {
	Schema string // empty: the name has none
	Name   string
	Only   bool   // without the tables that inherit from it
	Text   string // what is no name; there is no Name then
}

// RelationOf is the relation that a name means which GORM quotes.
func RelationOf(name string) Relation {
	if parts := strings.Split(name, "."); len(parts) == 2 {
		return Relation{Schema: parts[0], Name: parts[1]}
	} else if len(parts) > 2 {
		return Relation{Text: name}
	}
	return Relation{Name: name}
}

// RelationIn is the relation of a statement, without its alias. GORM does not quote a text with a blank, so PostgreSQL folds the names in it.
func RelationIn(stmt *gorm.Statement) Relation {
	if stmt.TableExpr == nil {
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

const oneName = "\"(?:[^\"]|\"\")+\"|`[^`]+`|[a-z_][\\w$]*"

var relation = regexp.MustCompile(`(?i)^\s*(only\s+)?(` + oneName + `)(?:\s*\.\s*(` + oneName + `))?(?:\s+(?:as\s+)?(?:` + oneName + `))?\s*$`)

// identifier is the name that an identifier of a text means.
func identifier(text string, folds bool) string {
	switch {
	case text[0] == '`':
		return text[1 : len(text)-1]
	case text[0] == '"' || folds:
		return Folded(text)
	}
	return text
}
