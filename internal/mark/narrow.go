package mark

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/statement"
)

// Narrow is a scope that adds conditions to a statement, after brackets around all conditions of its db and its
// other scopes. Without the brackets an Or among them would reach other rows.
func Narrow(conditions ...clause.Expression) func(*gorm.DB) *gorm.DB {
	return statement.LastScope(func(db *gorm.DB) {
		stmt := db.Statement
		where, given := statement.Conditions(stmt)
		if _, ok := where.Expression.(clause.Where); !ok && where.Expression != nil {
			given = []clause.Expression{where.Expression}
		}
		where.Name, where.Expression = "WHERE", clause.Where{Exprs: append(bracketed(given), conditions...)}
		stmt.Clauses["WHERE"] = where
	})
}

// bracketed puts conditions into brackets. Marks are not hidden by them: they are looked for before the statement is
// built, among its conditions and in the groups that GORM knows.
func bracketed(conditions []clause.Expression) []clause.Expression {
	var marks, rest []clause.Expression
	for _, condition := range conditions {
		if _, ok := condition.(Mark); ok {
			marks = append(marks, condition)
		} else {
			rest = append(rest, condition)
		}
	}
	switch {
	case len(rest) == 0:
		return marks
	case First(rest) != nil:
		return append(marks, clause.And(rest...))
	}
	return append(marks, brackets{rest})
}

// brackets are conditions as GORM would write them alone.
type brackets struct{ conditions []clause.Expression }

// Build implements [clause.Expression].
func (b brackets) Build(builder clause.Builder) {
	_ = builder.WriteByte('(')
	clause.Where{Exprs: append([]clause.Expression(nil), b.conditions...)}.Build(builder) // which changes their order
	_ = builder.WriteByte(')')
}
