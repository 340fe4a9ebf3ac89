package mark

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// RefuseLeftOut fails a write, or raw SQL, if conditions with a clause of gormlock are where GORM builds none: in HAVING, in a
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

// refuseLeftOutOfRead does so for a query. GORM builds all conditions of a query unless its text was given.
func refuseLeftOutOfRead(db *gorm.DB) {
	if db.Statement.SQL.Len() > 0 {
		RefuseLeftOut(db)
	} else {
		refuseInJoins(db, false)
		refuseInAssigned(db)
	}
	refuseInPreloads(db)
}

// refuseInJoins fails a statement if a db among the conditions of its joins has a clause of gormlock. For a read GORM takes the
// conditions and never runs the scopes; for a write it takes nothing. So the clause would be dropped silently.
func refuseInJoins(db *gorm.DB, write bool) {
	for i := range db.Statement.Joins {
		if _, relation := statement.RelationAlias(db.Statement, db.Statement.Joins[i].Name, ""); !write && !relation {
			continue // a text: its sub-queries are built like any other
		}
		for _, argument := range db.Statement.Joins[i].Conds {
			if conditions, ok := argument.(*gorm.DB); ok && conditions != nil && conditions.Statement != nil {
				refuseOf(db, conditions, write)
			}
		}
	}
}

// refuseDropped fails a statement with conditions that GORM does not build, if they or their sub-queries have a clause of gormlock.
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

// refuseOf fails a statement if it would drop a clause of the db in one of its parts. For a read, only clauses that decide which rows come
// back count.
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

// withScopes runs the scopes of conditions on a copy. A scope may panic, for example because there is no model. It is
// recovered, because in plain GORM the scope would not run here.
func withScopes(conditions *gorm.DB) *gorm.Statement {
	probe := conditions.Session(&gorm.Session{DryRun: true}).Where("true") // a copy
	func() {
		defer func() { _ = recover() }()
		probe.Statement.BuildCondition(probe)
	}()
	return probe.Statement
}
