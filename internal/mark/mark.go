package mark

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/sqltx"
	"github.com/gormlock/gormlock/internal/statement"
)

// Mark stands among the conditions of a statement that carries a clause of gormlock, until the statement runs. If GORM
// copies the conditions of one db into the statement of another, as a group or for a join, it does not copy the clauses.
// It copies the mark, and that statement fails.
type Mark interface {
	clause.Expression
	// Heeded reports whether the statement itself does what the mark's clause asks.
	Heeded(stmt *gorm.Statement) bool
	// Covered reports whether the statement does what the clause asks, if a part of the statement carries the clause.
	Covered(stmt *gorm.Statement) bool
	// Matters reports whether a read, or a write, would be wrong without the clause.
	Matters(write bool) bool
	// Late is the error if a write finds the mark only after its hooks, nil if that is early enough.
	Late() error
	// Refusal is the error of a statement that does not do what the clause asks.
	Refusal() error
}

// kinds has one function for each kind of mark. It returns the mark of a clause that the statement itself carries, or nil.
var kinds []func(*gorm.Statement) Mark

// Register names the kinds of marks. The root package does so once, before any statement is run.
func Register(all ...func(*gorm.Statement) Mark) { kinds = all }

// Put puts a mark into the statement.
func Put(stmt *gorm.Statement, m Mark) {
	if c, ok := stmt.Clauses["WHERE"]; ok && c.Expression != nil {
		if _, ok := c.Expression.(clause.Where); !ok { // GORM would replace it
			c.Expression = clause.Where{Exprs: []clause.Expression{c.Expression, m}}
			stmt.Clauses["WHERE"] = c
			return
		}
	}
	stmt.AddClause(clause.Where{Exprs: []clause.Expression{m}})
}

// Refuse builds a mark that is still there: it adds an error. It also adds an argument that cannot be sent, because GORM
// drops the errors of sub-queries.
func Refuse(builder clause.Builder, m Mark) {
	err := m.Refusal()
	if stmt, ok := builder.(*gorm.Statement); ok {
		fault.Add(stmt.DB, err)
	}
	statement.Write(builder, "CAST(")
	builder.AddVar(builder, sqltx.FailedValue{Err: err})
	statement.Write(builder, " AS boolean)")
}

// Heed removes the marks that the statement acts on from its conditions, before anything reads them.
func Heed(stmt *gorm.Statement) {
	heed(stmt, func(m Mark) bool { return m.Heeded(stmt) })
}

// HeedWrite is Heed for a write. It also fails the write if a clause would be dropped.
func HeedWrite(db *gorm.DB) {
	Heed(db.Statement)
	RefuseLeftOut(db)
}

// HeedRead is Heed for a read. It also fails the read if a clause that matters for reads would be dropped.
func HeedRead(db *gorm.DB) {
	heed(db.Statement, func(m Mark) bool {
		return !m.Matters(false) || m.Heeded(db.Statement)
	})
	refuseLeftOutOfRead(db)
}

// heed removes these marks until the statement has run. Its db may be used again, perhaps as a group of conditions. Then
// GORM runs its scopes first, and one of them puts the marks back.
func heed(stmt *gorm.Statement, heeded func(Mark) bool) {
	if Remove(stmt, heeded) {
		stmt.Clauses[Running] = clause.Clause{Expression: running{stmt}}
		statement.AddScope(stmt, markAgain)
	}
	if by, having := statement.Having(stmt); First(having) != nil {
		grouping, _ := by.Expression.(clause.GroupBy)
		grouping.Having = withoutMarks(having, heeded)
		by.Expression = grouping
		stmt.Clauses["GROUP BY"] = by
	}
	for i, join := range stmt.Joins {
		if join.On != nil && First(join.On.Exprs) != nil {
			stmt.Joins[i].On = &clause.Where{Exprs: withoutMarks(join.On.Exprs, heeded)}
		}
	}
}

// Remove removes the marks that the statement acts on, and reports whether there were any marks.
func Remove(stmt *gorm.Statement, heeded func(Mark) bool) bool {
	c, where := statement.Conditions(stmt)
	if First(where) == nil {
		return false
	}
	rest := withoutMarks(where, heeded)
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

// First is the first mark among the conditions, nil if there is none.
func First(conditions []clause.Expression) Mark {
	var found Mark
	for _, condition := range conditions {
		switch c := condition.(type) {
		case Mark:
			found = c
		case clause.AndConditions:
			found = First(c.Exprs)
		case clause.OrConditions:
			found = First(c.Exprs)
		case clause.NotConditions:
			found = First(c.Exprs)
		case clause.Where:
			found = First(c.Exprs)
		case brackets:
			found = First(c.conditions)
		}
		if found != nil {
			break
		}
	}
	return found
}

// withoutMarks returns the conditions as GORM would have combined them without the heeded marks.
func withoutMarks(conditions []clause.Expression, heeded func(Mark) bool) []clause.Expression {
	rest := make([]clause.Expression, 0, len(conditions))
	for _, condition := range conditions {
		if First([]clause.Expression{condition}) != nil {
			condition = withoutMark(condition, heeded)
		}
		if condition != nil {
			rest = append(rest, condition)
		}
	}
	return rest
}

func withoutMark(condition clause.Expression, heeded func(Mark) bool) clause.Expression {
	switch c := condition.(type) {
	case Mark:
		if heeded(c) {
			return nil
		}
	case clause.AndConditions:
		return clause.And(group(withoutMarks(c.Exprs, heeded))...)
	case clause.OrConditions:
		return clause.Or(withoutMarks(c.Exprs, heeded)...)
	case clause.NotConditions:
		return clause.Not(group(withoutMarks(c.Exprs, heeded))...)
	case clause.Where:
		if rest := withoutMarks(c.Exprs, heeded); len(rest) > 0 {
			return clause.Where{Exprs: rest}
		}
		return nil
	case brackets:
		if rest := withoutMarks(c.conditions, heeded); len(rest) > 0 {
			return Brackets(rest)
		}
		return nil
	}
	return condition
}

// group is the conditions of a group. If it has only one, it does not matter that it was added by Or, as in GORM.
func group(conditions []clause.Expression) []clause.Expression {
	if len(conditions) == 1 {
		if or, ok := conditions[0].(clause.OrConditions); ok && len(or.Exprs) == 1 {
			return []clause.Expression{clause.AndConditions(or)}
		}
	}
	return conditions
}

// IsOn reports whether the conditions of the statement have a mark.
func IsOn(stmt *gorm.Statement) bool {
	_, where := statement.Conditions(stmt)
	return First(where) != nil
}

// RefuseLate fails a write if its hooks or other plugins have added a mark that comes too late. It heeds the other
// marks.
func RefuseLate(db *gorm.DB) {
	_, where := statement.Conditions(db.Statement)
	for _, condition := range where {
		if m, ok := condition.(Mark); ok && m.Late() != nil {
			fault.Add(db, m.Late())
		}
	}
	Heed(db.Statement)
	if _, where = statement.Conditions(db.Statement); First(where) != nil {
		fault.Add(db, First(where).Refusal())
	}
}

// RefuseAfterHooks fails a statement if an after hook has added a mark: the statement has already run.
func RefuseAfterHooks(db *gorm.DB) {
	if _, where := statement.Conditions(db.Statement); db.Error == nil && First(where) != nil {
		fault.Add(db, fmt.Errorf("gormlock: %s: a hook asked for it after the statement had run: %w", statement.TableName(db.Statement), First(where).Refusal()))
	}
}
