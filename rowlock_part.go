package gormlock

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// rowsLockedHere is the mark of a row lock: a group of conditions and the conditions of a join lock no rows.
type rowsLockedHere struct{ lock RowLockClause }

// Build implements [clause.Expression].
func (h rowsLockedHere) Build(builder clause.Builder) { refuseMark(builder, h) }

func (rowsLockedHere) refusal() error { return ErrSubQuery }

func (h rowsLockedHere) heeded(stmt *gorm.Statement) bool {
	lock, locks := rowLockOf(stmt)
	return locks && reflect.DeepEqual(any(lock), any(h.lock))
}

// refuseInJoins fails a query whose joins have conditions on a db with a scope that locks or expects something: GORM takes
// the conditions and never runs the scopes, so that it would be dropped without a word.
func refuseInJoins(db *gorm.DB) {
	for i := range db.Statement.Joins {
		for _, argument := range db.Statement.Joins[i].Conds {
			conditions, ok := argument.(*gorm.DB)
			if !ok || conditions == nil || conditions.Statement == nil {
				continue
			}
			stmt := withScopes(conditions)
			_, rows := rowLockOf(stmt)
			switch {
			case rows, xactLockOn(stmt) != nil && !holds(xactLockOn(db.Statement), xactLockOn(stmt)):
				fail(db, ErrSubQuery)
				return
			case versionIntentOf(stmt).compares() && !versionIntentOf(db.Statement).covers(versionIntentOf(stmt)):
				fail(db, askedHere{versionIntentOf(stmt)}.refusal())
				return
			}
		}
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
