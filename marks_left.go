package gormlock

import (
	"database/sql"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// refuseLeftOut fails a write, or raw SQL, with conditions that ask for something where GORM builds none: in HAVING, in a
// join, around a text.
func refuseLeftOut(db *gorm.DB) {
	stmt := db.Statement
	if _, having := havingOf(stmt); len(having) > 0 {
		refuseDropped(db, having)
	}
	for _, join := range stmt.Joins {
		if join.On != nil {
			refuseDropped(db, join.On.Exprs)
		}
	}
	if stmt.SQL.Len() > 0 && !isSavepoint(stmt) {
		_, where := conditionsOf(stmt)
		refuseDropped(db, where)
	}
	refuseInJoins(db, true)
}

// refuseLeftOutOfRead does so for a query, which has all conditions unless its text was given.
func refuseLeftOutOfRead(db *gorm.DB) {
	if db.Statement.SQL.Len() > 0 {
		refuseLeftOut(db)
	} else {
		refuseInJoins(db, false)
	}
}

// refuseInJoins fails a statement whose joins have conditions on a db that locks or expects something: GORM takes the
// conditions for a read, and never runs the scopes, and takes nothing for a write, so that it would be dropped without a word.
func refuseInJoins(db *gorm.DB, write bool) {
	for i := range db.Statement.Joins {
		for _, argument := range db.Statement.Joins[i].Conds {
			if conditions, ok := argument.(*gorm.DB); ok && conditions != nil && conditions.Statement != nil {
				refuseOf(db, conditions, write)
			}
		}
	}
}

// refuseDropped fails a statement whose conditions ask for something, or have sub-queries that do, and are not built.
func refuseDropped(db *gorm.DB, conditions []clause.Expression) {
	if m := firstMark(conditions); m != nil {
		fail(db, m.refusal())
		return
	}
	eachSubQuery(conditions, func(sub *gorm.DB) { refuseOf(db, sub, true) })
}

// refuseOf fails a statement that leaves out what the db of a part of it asks for: in a read only what decides on rows.
func refuseOf(db, part *gorm.DB, write bool) {
	if db.Error != nil {
		return
	}
	stmt := withScopes(part)
	_, rows := rowLockOf(stmt)
	intent := versionIntentOf(stmt)
	switch {
	case rows, xactLockOn(stmt) != nil && !holds(xactLockOn(db.Statement), xactLockOn(stmt)):
		fail(db, ErrSubQuery)
	case intent != nil && (write || intent.compares()) && !versionIntentOf(db.Statement).covers(intent):
		fail(db, askedHere{intent}.refusal())
	case write:
		_, where := conditionsOf(stmt)
		eachSubQuery(where, func(sub *gorm.DB) { refuseOf(db, sub, true) })
	}
}

// eachSubQuery visits the sub-queries in a condition, or in its arguments.
func eachSubQuery(condition any, visit func(*gorm.DB)) {
	switch c := condition.(type) {
	case *gorm.DB:
		if c != nil && c.Statement != nil {
			visit(c)
		}
	case []clause.Expression:
		for _, part := range c {
			eachSubQuery(part, visit)
		}
	case []any:
		for _, argument := range c {
			eachSubQuery(argument, visit)
		}
	case map[string]any:
		for _, argument := range c {
			eachSubQuery(argument, visit)
		}
	case sql.NamedArg:
		eachSubQuery(c.Value, visit)
	case clause.AndConditions:
		eachSubQuery(c.Exprs, visit)
	case clause.OrConditions:
		eachSubQuery(c.Exprs, visit)
	case clause.NotConditions:
		eachSubQuery(c.Exprs, visit)
	case clause.Where:
		eachSubQuery(c.Exprs, visit)
	case clause.Expr:
		eachSubQuery(c.Vars, visit)
	case clause.NamedExpr:
		eachSubQuery(c.Vars, visit)
	case clause.IN:
		eachSubQuery(c.Values, visit)
	case clause.Eq:
		eachSubQuery(c.Value, visit)
	case clause.Neq:
		eachSubQuery(c.Value, visit)
	}
}

// withScopes runs the scopes of conditions on a copy. One that panics, for want of a model, does not take the program
// down: without us it would not run.
func withScopes(conditions *gorm.DB) *gorm.Statement {
	probe := conditions.Session(&gorm.Session{DryRun: true}).Where("true") // a copy
	func() {
		defer func() { _ = recover() }()
		probe.Statement.BuildCondition(probe)
	}()
	return probe.Statement
}
