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

// Brackets is conditions of the caller as one that can stand beside conditions of ours. It is the only way to put them there: the
// statement fails if they close a parenthesis that they do not open, because what stands behind it would evade ours.
func Brackets(conditions []clause.Expression) clause.Expression { return brackets{conditions} }

// IsBracketed reports whether a condition is one that [Brackets] has made.
func IsBracketed(condition clause.Expression) bool {
	_, is := condition.(brackets)
	return is
}

// InBrackets are the conditions in what [Brackets] has made.
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
	if len(rest) == 0 {
		return marks
	}
	return append(marks, Brackets(rest))
}

// brackets are conditions as GORM would write them alone.
type brackets struct{ conditions []clause.Expression }

// Build implements [clause.Expression].
func (b brackets) Build(builder clause.Builder) {
	where := clause.Where{Exprs: append([]clause.Expression(nil), b.conditions...)} // which changes their order
	stmt, ok := builder.(*gorm.Statement)
	_ = builder.WriteByte('(')
	start := 0
	if ok {
		start = stmt.SQL.Len()
	}
	where.Build(builder)
	if ok {
		RefuseOpen(stmt, start)
		statement.EndComment(stmt)
	}
	_ = builder.WriteByte(')')
}

// RefuseOpen fails a statement whose text from start on, which the caller gave and which stands in brackets of ours, closes them.
func RefuseOpen(stmt *gorm.Statement, start int) {
	if !(statement.SQL{Statement: stmt}).IsClosed(start) {
		fault.Add(stmt.DB, fmt.Errorf("gormlock: %s: the conditions close a parenthesis that they do not open, and what stands behind it would reach other rows", statement.TableName(stmt)))
	}
}
