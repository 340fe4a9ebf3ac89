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
			conditions, ok := argument.(*gorm.DB)
			if !ok || conditions == nil || conditions.Statement == nil {
				continue
			}
			probe := conditions.Session(&gorm.Session{}).Set("gormlock:probe", true) // a copy, with the scopes
			probe.Statement.BuildCondition(probe)                                    // runs them
			if _, rows := rowLockOf(probe.Statement); rows || xactLockOn(probe.Statement) != nil {
				fail(db, ErrSubQuery)
				return
			}
		}
	}
}
