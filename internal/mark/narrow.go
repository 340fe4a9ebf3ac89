package mark

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// Narrow is a scope that adds conditions to a statement, after brackets around all conditions of its db and its
// other scopes. Without the brackets an Or among them would reach other rows.
func Narrow(conditions ...clause.Expression) func(*gorm.DB) *gorm.DB {
	return statement.LastScope(func(db *gorm.DB) { NarrowNow(db.Statement, conditions...) })
}

// NarrowNow does so to a statement whose scopes have run.
func NarrowNow(stmt *gorm.Statement, conditions ...clause.Expression) {
	where, given := statement.Conditions(stmt)
	if _, ok := where.Expression.(clause.Where); !ok && where.Expression != nil {
		given = []clause.Expression{where.Expression}
	}
	if len(given) > 0 {
		conditions = append(bracketed(given), conditions...)
	}
	where.Name, where.Expression = "WHERE", clause.Where{Exprs: conditions}
	stmt.Clauses["WHERE"] = where
}

// Bracket puts brackets around the conditions that a statement has so far. What is added to them is then always an And.
func Bracket(stmt *gorm.Statement) {
	where, given := statement.Conditions(stmt)
	if len(given) > 0 {
		where.Expression = clause.Where{Exprs: bracketed(given)}
		stmt.Clauses["WHERE"] = where
	}
}

// IsBracketed reports whether a condition is one that [Bracket] has made.
func IsBracketed(condition clause.Expression) bool {
	_, is := condition.(brackets)
	return is
}

// InBrackets are the conditions in what [Bracket] has made.
func InBrackets(condition clause.Expression) []clause.Expression {
	b, _ := condition.(brackets)
	return b.conditions
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
	where := clause.Where{Exprs: append([]clause.Expression(nil), b.conditions...)} // which changes their order
	if stmt, ok := builder.(*gorm.Statement); ok && !(statement.SQL{Statement: stmt}).Bracketed(where) {
		fault.Add(stmt.DB, fmt.Errorf("gormlock: %s: the conditions close a parenthesis that they do not open, and what stands behind it would reach other rows", statement.TableName(stmt)))
	} else if !ok {
		_ = builder.WriteByte('(')
		where.Build(builder)
		_ = builder.WriteByte(')')
	}
}
