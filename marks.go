package gormlock

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/sqltx"
)

// mark stands among the conditions of what carries one of our clauses until it is run. Where GORM takes the conditions of
// one db into the statement of another, as a group or for a join, it leaves the clauses behind: the mark goes along, and
// fails that statement.
type mark interface {
	clause.Expression
	// heeded reports whether the statement itself does what the mark's clause asks.
	heeded(stmt *gorm.Statement) bool
	refusal() error
}

// markConditions puts a mark into the statement.
func markConditions(stmt *gorm.Statement, m mark) {
	if c, ok := stmt.Clauses["WHERE"]; ok && c.Expression != nil {
		if _, ok := c.Expression.(clause.Where); !ok { // GORM would replace it
			c.Expression = clause.Where{Exprs: []clause.Expression{c.Expression, m}}
			stmt.Clauses["WHERE"] = c
			return
		}
	}
	stmt.AddClause(clause.Where{Exprs: []clause.Expression{m}})
}

// refuseMark is what is built of a mark that is still there: an error, and should that be dropped, as it is in
// sub-queries, an argument that cannot be sent.
func refuseMark(builder clause.Builder, m mark) {
	err := m.refusal()
	if stmt, ok := builder.(*gorm.Statement); ok {
		fail(stmt.DB, err)
	}
	_, _ = builder.WriteString("CAST(")
	builder.AddVar(builder, sqltx.FailedValue{Err: err})
	_, _ = builder.WriteString(" AS boolean)")
}

// settleMarks takes the marks that the statement heeds away from its conditions, before anything looks at these.
func settleMarks(stmt *gorm.Statement) {
	settle(stmt, func(m mark) bool { return m.heeded(stmt) })
}

// settleMarksOfRead does so for a read, to which clauses about versions say nothing but what it must be like.
func settleMarksOfRead(stmt *gorm.Statement) {
	settle(stmt, func(m mark) bool {
		asked, ok := m.(askedHere)
		return ok && !asked.intent.compares() || m.heeded(stmt)
	})
}

// settle takes these marks away until the statement has run. The db that carries it may be used again, as a group too: then
// GORM runs its scopes first.
func settle(stmt *gorm.Statement, heeded func(mark) bool) {
	if unmark(stmt, heeded) {
		stmt.Clauses[runningName] = clause.Clause{Expression: running{stmt}}
		scope(stmt, markAgain)
	}
	if by, having := havingOf(stmt); firstMark(having) != nil {
		grouping, _ := by.Expression.(clause.GroupBy)
		grouping.Having = withoutMarks(having, heeded)
		by.Expression = grouping
		stmt.Clauses["GROUP BY"] = by
	}
	for i, join := range stmt.Joins {
		if join.On != nil && firstMark(join.On.Exprs) != nil {
			stmt.Joins[i].On = &clause.Where{Exprs: withoutMarks(join.On.Exprs, heeded)}
		}
	}
}

// unmark takes away the marks that are settled, and reports whether there were any marks.
func unmark(stmt *gorm.Statement, settled func(mark) bool) bool {
	c, where := conditionsOf(stmt)
	if firstMark(where) == nil {
		return false
	}
	rest := withoutMarks(where, settled)
	switch plain := c.BeforeExpression == nil && c.AfterNameExpression == nil && c.AfterExpression == nil && c.Builder == nil; {
	case len(rest) > 0:
		c.Expression = clause.Where{Exprs: rest}
	case plain:
		delete(stmt.Clauses, "WHERE")
		return true
	default:
		c.Expression = nil // a hint stays
	}
	stmt.Clauses["WHERE"] = c
	return true
}

func conditionsOf(stmt *gorm.Statement) (clause.Clause, []clause.Expression) {
	c, ok := stmt.Clauses["WHERE"]
	if !ok {
		return c, nil
	}
	where, _ := c.Expression.(clause.Where)
	return c, where.Exprs
}

func havingOf(stmt *gorm.Statement) (clause.Clause, []clause.Expression) {
	c, ok := stmt.Clauses["GROUP BY"]
	if !ok {
		return c, nil
	}
	by, _ := c.Expression.(clause.GroupBy)
	return c, by.Having
}

// firstMark is nil where there is none.
func firstMark(conditions []clause.Expression) mark {
	var found mark
	for _, condition := range conditions {
		switch c := condition.(type) {
		case mark:
			found = c
		case clause.AndConditions:
			found = firstMark(c.Exprs)
		case clause.OrConditions:
			found = firstMark(c.Exprs)
		case clause.NotConditions:
			found = firstMark(c.Exprs)
		case clause.Where:
			found = firstMark(c.Exprs)
		}
		if found != nil {
			break
		}
	}
	return found
}

// withoutMarks returns the conditions as GORM would have put them together had there been no marks that are settled.
func withoutMarks(conditions []clause.Expression, settled func(mark) bool) []clause.Expression {
	rest := make([]clause.Expression, 0, len(conditions))
	for _, condition := range conditions {
		if firstMark([]clause.Expression{condition}) != nil {
			condition = withoutMark(condition, settled)
		}
		if condition != nil {
			rest = append(rest, condition)
		}
	}
	return rest
}

func withoutMark(condition clause.Expression, settled func(mark) bool) clause.Expression {
	switch c := condition.(type) {
	case mark:
		if settled(c) {
			return nil
		}
	case clause.AndConditions:
		return clause.And(group(withoutMarks(c.Exprs, settled))...)
	case clause.OrConditions:
		return clause.Or(withoutMarks(c.Exprs, settled)...)
	case clause.NotConditions:
		return clause.Not(group(withoutMarks(c.Exprs, settled))...)
	case clause.Where:
		if rest := withoutMarks(c.Exprs, settled); len(rest) > 0 {
			return clause.Where{Exprs: rest}
		}
		return nil
	}
	return condition
}

// group is the conditions of a group: where it has but one, it does not matter that this was added by Or, as with GORM.
func group(conditions []clause.Expression) []clause.Expression {
	if len(conditions) == 1 {
		if or, ok := conditions[0].(clause.OrConditions); ok && len(or.Exprs) == 1 {
			return []clause.Expression{clause.AndConditions(or)}
		}
	}
	return conditions
}

// heedLateMarks runs right before a write, when hooks and what other plugins do before it are through. A lock that came
// with one of them is taken now; for what was asked about versions and fences it is too late.
func heedLateMarks(db *gorm.DB) {
	_, where := conditionsOf(db.Statement)
	if firstMark(where) == nil {
		return
	}
	takeXactLocks(db)
	refuseRowLock(db)
	for _, condition := range where {
		if late, ok := condition.(askedHere); ok {
			fail(db, late.refusal())
		}
	}
	settleMarks(db.Statement)
	if _, where = conditionsOf(db.Statement); firstMark(where) != nil {
		fail(db, firstMark(where).refusal())
	}
}

// refuseMarksOfAfterHooks fails a statement of which an after hook still asks something: it has run.
func refuseMarksOfAfterHooks(db *gorm.DB) {
	if _, where := conditionsOf(db.Statement); db.Error == nil && firstMark(where) != nil {
		fail(db, fmt.Errorf("gormlock: %s: asked for in a hook after the statement, which has run: %w", tableName(db.Statement), firstMark(where).refusal()))
	}
}
