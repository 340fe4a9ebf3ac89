package rowlock

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/mark"
)

// rowsLockedHere marks a row lock, because a group of conditions and the conditions of a join lock no rows.
type rowsLockedHere struct{ lock Lock }

// Build implements [clause.Expression].
func (h rowsLockedHere) Build(builder clause.Builder) { mark.Refuse(builder, h) }

// Mark is the mark of the row lock that a statement carries.
func Mark(stmt *gorm.Statement) mark.Mark {
	if lock, locks := On(stmt); locks {
		return rowsLockedHere{lock}
	}
	return nil
}

// Refusal implements mark.Mark, as do the methods below.
func (rowsLockedHere) Refusal() error { return fault.ErrSubQuery }

// Covered is false: a lock locks the rows of its own statement.
func (rowsLockedHere) Covered(*gorm.Statement) bool { return false }

func (rowsLockedHere) Matters(bool) bool { return true }

func (rowsLockedHere) Late() error { return nil }

func (h rowsLockedHere) Heeded(stmt *gorm.Statement) bool {
	lock, locks := On(stmt)
	return locks && reflect.DeepEqual(any(lock), any(h.lock))
}
