package gormlock

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// rowsLockedHere stands among the conditions of a query that locks rows until it is run, as lockedHere does: a group of
// conditions and the conditions of a join lock no rows.
type rowsLockedHere struct{}

// Build implements [clause.Expression].
func (rowsLockedHere) Build(builder clause.Builder) {
	if stmt, ok := builder.(*gorm.Statement); ok {
		if _, locks := rowLockOf(stmt); !locks {
			fail(stmt.DB, ErrSubQuery)
		}
	}
	_, _ = builder.WriteString("1=1")
}

// refuseInJoins fails a query whose joins have conditions on a db with a scope that locks: GORM takes the conditions and
// never runs the scopes, so that the lock would be dropped without a word.
func refuseInJoins(db *gorm.DB) {
	for i := range db.Statement.Joins {
		for _, argument := range db.Statement.Joins[i].Conds {
			if conditions, ok := argument.(*gorm.DB); ok && conditions != nil && conditions.Statement != nil && locksInScopes(conditions) {
				fail(db, ErrSubQuery)
				return
			}
		}
	}
}

// locksInScopes runs the scopes of conditions on a copy. One that panics, for want of a model, does not take the program
// down: without us it would not run.
func locksInScopes(conditions *gorm.DB) (locks bool) {
	defer func() { _ = recover() }()
	probe := conditions.Session(&gorm.Session{DryRun: true}).Where("true") // a copy
	probe.Statement.BuildCondition(probe)
	_, rows := rowLockOf(probe.Statement)
	return rows || xactLockOn(probe.Statement) != nil
}
