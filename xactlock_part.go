package gormlock

import (
	"slices"

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
