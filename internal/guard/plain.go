package guard

import (
	"slices"

	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/statement"
)

// isPlain reports whether conditions can be joined with AND without parentheses.
func isPlain(exprs []clause.Expression) bool {
	for _, expr := range exprs {
		is := mark.IsBracketed(expr)
		switch e := expr.(type) {
		case clause.Eq:
			is = isName(e.Column) && !statement.Computed(e.Value)
		case clause.IN:
			is = isName(e.Column) && !slices.ContainsFunc(e.Values, statement.Computed)
		case keysIn:
			is = true
		}
		if !is {
			return false
		}
	}
	return true
}

// isName reports whether a column is not a text of the caller, which may contain an OR.
func isName(column any) bool {
	c, is := column.(clause.Column)
	_, named := column.(string)
	return named || is && !c.Raw
}
