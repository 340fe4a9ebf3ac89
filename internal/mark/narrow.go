package mark

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// Narrow is a scope that adds conditions to a statement. It puts brackets around all conditions of the db and its
// other scopes first: without them, an Or among these would reach other rows.
func Narrow(conditions ...clause.Expression) func(*gorm.DB) *gorm.DB {
	return statement.LastScope(func(db *gorm.DB) { NarrowNow(db.Statement, conditions...) })
}

// NarrowNow does the same to a statement after its scopes have run.
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

// Bracket puts brackets around the conditions that a statement has so far. Later conditions are then always added by And.
func Bracket(stmt *gorm.Statement) {
	where, given := statement.Conditions(stmt)
	if len(given) > 0 {
		where.Expression = clause.Where{Exprs: bracketed(given)}
		stmt.Clauses["WHERE"] = where
	}
}

// Brackets makes one condition of the caller's conditions, which can stand beside gormlock's. There is no other safe way to combine them: the
// statement fails if the caller's close a parenthesis that they do not open, because then gormlock's would not apply to what follows.
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

// bracketed puts conditions into brackets. Marks stay outside of the brackets, where they are found before the statement
// is built.
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

// brackets are conditions in brackets, written as GORM would write them alone.
type brackets struct{ conditions []clause.Expression }

// Build implements [clause.Expression].
func (b brackets) Build(builder clause.Builder) {
	where := clause.Where{Exprs: append([]clause.Expression(nil), b.conditions...)} // a copy: Build changes the order
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

// RefuseOpen fails a statement if its text from start on closes brackets of gormlock. The caller gave that text.
func RefuseOpen(stmt *gorm.Statement, start int) {
	if !(statement.SQL{Statement: stmt}).IsClosed(start) {
		fault.Add(stmt.DB, fmt.Errorf("gormlock: %s: the conditions close a parenthesis that they do not open, and what stands behind it would reach other rows", statement.TableName(stmt)))
	}
}
