package gormlock

import (
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/lockkey"
)

// lockedHere stands among the conditions of what carries a lock until it is run. Where GORM takes the conditions of one
// db into the statement of another, as a group or for a join, it goes with them and fails that statement: the lock would
// stay behind.
type lockedHere struct{ request *advisory.Request }

// Build implements [clause.Expression].
func (h lockedHere) Build(builder clause.Builder) {
	if stmt, ok := builder.(*gorm.Statement); ok && !holds(xactLockOn(stmt), h.request) {
		fail(stmt.DB, ErrSubQuery)
	}
	_, _ = builder.WriteString("1=1")
}

// holds reports whether outer takes all the locks of inner itself.
func holds(outer, inner *advisory.Request) bool {
	if outer == nil {
		return false
	}
	keys := outer.Keys()
	for _, key := range inner.Keys() {
		if !slices.ContainsFunc(keys, func(k lockkey.Key) bool { return lockkey.Compare(k, key) == 0 }) {
			return false
		}
	}
	return true
}

// allowHere takes lockedHere and rowsLockedHere away from the statement that is run itself.
func allowHere(stmt *gorm.Statement) {
	unmark(stmt, func(e clause.Expression) bool {
		switch e.(type) {
		case lockedHere, rowsLockedHere:
			return true
		}
		return false
	})
}

// unmark takes marks away from the conditions of a statement.
func unmark(stmt *gorm.Statement, isMark func(clause.Expression) bool) {
	c, ok := stmt.Clauses["WHERE"]
	if !ok {
		return
	}
	where, ok := c.Expression.(clause.Where)
	if !ok || !slices.ContainsFunc(where.Exprs, isMark) {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(where.Exprs), isMark)
	if len(rest) == 0 {
		delete(stmt.Clauses, "WHERE")
		return
	}
	c.Expression = clause.Where{Exprs: rest}
	stmt.Clauses["WHERE"] = c
}
