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
