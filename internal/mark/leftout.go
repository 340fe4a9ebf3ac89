package mark

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// RefuseLeftOut fails a write, or raw SQL, with conditions that ask for something where GORM builds none: in HAVING, in a
// join, around a text.
func RefuseLeftOut(db *gorm.DB) {
	stmt := db.Statement
	if _, having := statement.Having(stmt); len(having) > 0 {
		refuseDropped(db, having)
	}
	for _, join := range stmt.Joins {
		if join.On != nil {
			refuseDropped(db, join.On.Exprs)
		}
	}
	if stmt.SQL.Len() > 0 && !statement.IsSavepoint(stmt) {
		_, where := statement.Conditions(stmt)
		refuseDropped(db, where)
	}
	refuseInJoins(db, true)
	refuseInAssigned(db)
}

// refuseLeftOutOfRead does so for a query, which has all conditions unless its text was given.
func refuseLeftOutOfRead(db *gorm.DB) {
	if db.Statement.SQL.Len() > 0 {
		RefuseLeftOut(db)
	} else {
		refuseInJoins(db, false)
		refuseInAssigned(db)
	}
	refuseInPreloads(db)
}

// refuseInJoins fails a statement whose joins have conditions on a db that locks or expects something: GORM takes the
// conditions for a read, and never runs the scopes, and takes nothing for a write, so that it would be dropped without a word.
func refuseInJoins(db *gorm.DB, write bool) {
	for i := range db.Statement.Joins {
		if _, relation := statement.RelationAlias(db.Statement, db.Statement.Joins[i].Name, ""); !write && !relation {
			continue // it is a text whose sub-queries are built as any other
		}
		for _, argument := range db.Statement.Joins[i].Conds {
			if conditions, ok := argument.(*gorm.DB); ok && conditions != nil && conditions.Statement != nil {
				refuseOf(db, conditions, write)
			}
		}
	}
}

// refuseDropped fails a statement whose conditions ask for something, or have sub-queries that do, and are not built.
func refuseDropped(db *gorm.DB, conditions []clause.Expression) {
	if db.Error != nil {
		return
	}
	if m := First(conditions); m != nil {
		fault.Add(db, m.Refusal())
		return
	}
	statement.EachSubQuery(conditions, func(sub *gorm.DB) { refuseOf(db, sub, true) })
}

// refuseOf fails a statement that leaves out what the db of a part of it asks for: in a read only what decides on rows.
func refuseOf(db, part *gorm.DB, write bool) {
	if db.Error != nil {
		return
	}
	stmt := withScopes(part)
	for _, of := range kinds {
		if m := of(stmt); m != nil && m.Matters(write) && !m.Covered(db.Statement) {
			fault.Add(db, m.Refusal())
			return
		}
	}
	_, where := statement.Conditions(stmt)
	if m := First(where); m != nil && m.Matters(write) && !m.Covered(db.Statement) {
		fault.Add(db, m.Refusal())
		return
	}
	if write {
		statement.EachSubQuery(where, func(sub *gorm.DB) { refuseOf(db, sub, true) })
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
