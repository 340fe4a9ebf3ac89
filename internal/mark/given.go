package mark

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// Given names the parts of a statement that a db was given: conditions, locks, scopes. A call that makes statements of its own would drop them.
// In a hook, parts of the statement around the hook do not count. Nor does dbresolver's Use, because the call runs on the database that it names.
func Given(db *gorm.DB) (given []string) {
	stmt := statement.Beside(db).Statement
	for name := range stmt.Clauses {
		switch {
		case name == statement.Using:
			continue
		case name == "FOR":
			name = "a row lock"
		case name == "soft_delete_enabled":
			name = "a condition on deleted rows"
		case strings.HasPrefix(name, "gormlock:"):
			name = Ours
		}
		given = append(given, name)
	}
	if slices.Sort(given); len(given) > 1 { // a clause of gormlock marks the WHERE too
		given = slices.DeleteFunc(given, func(name string) bool { return name == "WHERE" })
	}
	for _, part := range []struct {
		is   bool
		name string
	}{
		{statement.HasScopes(stmt), Scopes}, {stmt.Model != nil, "Model"}, {stmt.Table != "" || stmt.TableExpr != nil, "Table"}, {len(stmt.Joins) > 0, "Joins"},
		{len(stmt.Preloads) > 0, "Preload"}, {len(stmt.Selects) > 0, "Select"}, {len(stmt.Omits) > 0, "Omit"}, {stmt.Distinct, "Distinct"},
		{stmt.Unscoped, "Unscoped"}, {stmt.SQL.Len() > 0, "Raw"},
	} {
		if part.is {
			given = append(given, part.name)
		}
	}
	return slices.Compact(given)
}

// Names in the result of Given.
const (
	Ours   = "a clause of gormlock"
	Scopes = "scopes"
)

// RefuseGiven is the error of a call that would drop what its db was given, nil if it uses everything.
func RefuseGiven(db *gorm.DB, call, cure string, used ...string) error {
	given := slices.DeleteFunc(Given(db), func(name string) bool { return slices.Contains(used, name) })
	if len(given) > 0 {
		return fmt.Errorf("%w: %s would drop what its db was given (%s): %s", fault.ErrOption, call, strings.Join(given, ", "), cure)
	}
	return nil
}
