package gormlock

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/lockkey"
)

// lockedHere is the mark of locks on transactions.
type lockedHere struct{ request *advisory.Request }

// Build implements [clause.Expression].
func (h lockedHere) Build(builder clause.Builder) { refuseMark(builder, h) }

func (lockedHere) refusal() error { return ErrSubQuery }

func (h lockedHere) heeded(stmt *gorm.Statement) bool { return holds(xactLockOn(stmt), h.request) }

// holds reports whether outer takes all the locks of inner itself, none of them weaker.
func holds(outer, inner *advisory.Request) bool {
	if outer == nil {
		return false
	}
	all := true
	inner.Each(func(key lockkey.Key, shared bool) {
		taken := false
		outer.Each(func(k lockkey.Key, weak bool) {
			taken = taken || lockkey.Compare(k, key) == 0 && (shared || !weak)
		})
		all = all && taken
	})
	return all
}
