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
