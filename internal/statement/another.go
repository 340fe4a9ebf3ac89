package statement

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// MovingRoots is the setting with the names of the roots whose move a statement is part of.
const MovingRoots = "gormlock:moving"

// IsForAnother reports whether the statement is part of one of another model: it saves or takes away rows of an association, or moves a root.
func IsForAnother(stmt *gorm.Statement) bool {
	if _, moves := stmt.Settings.Load(MovingRoots); moves || IsAssociation(stmt) {
		return true
	}
	if slices.Contains(stmt.BuildClauses, "VALUES") {
		return DoesNothing(stmt) && InLinking()
	}
	_, given := Conditions(stmt)
	switch { // GORM finds these rows by conditions, and not by the key of a struct
	case len(given) == 0, slices.Contains(stmt.BuildClauses, "SET") && emptiesOwn(stmt, given):
		return false
	case isSubQuery(given[len(given)-1]) && ExecutedIn(associationUpdate):
		return true
	}
	return InDeleteOfOwner() || InUnlinking()
}

// emptiesOwn reports whether the update, if it is made by an Association, empties foreign keys of the owner, and not of its children. GORM names
// the owners first.
func emptiesOwn(stmt *gorm.Statement, given []clause.Expression) bool {
	if row := reflect.Indirect(reflect.ValueOf(stmt.Model)); row.Kind() != reflect.Struct || !row.IsZero() {
		return true
	}
	for {
		group, is := given[0].(clause.AndConditions)
		if !is || len(group.Exprs) == 0 {
			break
		}
		given = group.Exprs
	}
	in, _ := given[0].(clause.IN)
	columns, is := in.Column.([]clause.Column)
	if one, single := in.Column.(clause.Column); single {
		columns, is = []clause.Column{one}, true
	}
	return is && slices.EqualFunc(columns, stmt.Schema.PrimaryFieldDBNames, func(c clause.Column, name string) bool { return c.Name == name })
}

// isSubQuery reports whether a condition is one of those by which gorm.G finds the rows of an association.
func isSubQuery(condition clause.Expression) bool {
	expr, _ := condition.(clause.Expr)
	return expr.SQL == "? IN (?)" || expr.SQL == "EXISTS (?)"
}
