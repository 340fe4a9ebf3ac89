package xact

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/lockkey"
)

// lockedHere is the mark of locks on transactions.
type lockedHere struct{ request *lockrequest.Request }

// Build implements [clause.Expression].
func (h lockedHere) Build(builder clause.Builder) { mark.Refuse(builder, h) }

// Mark is the mark of the locks that a statement carries.
func Mark(stmt *gorm.Statement) mark.Mark {
	if request := On(stmt); request != nil {
		return lockedHere{request}
	}
	return nil
}

// Refusal implements mark.Mark, as do the methods below.
func (lockedHere) Refusal() error { return fault.ErrSubQuery }

func (h lockedHere) Heeded(stmt *gorm.Statement) bool { return holds(On(stmt), h.request) }

func (h lockedHere) Covered(stmt *gorm.Statement) bool { return h.Heeded(stmt) }

func (lockedHere) Matters(bool) bool { return true }

func (lockedHere) Late() error { return nil }

// holds reports whether outer takes all the locks of inner itself, none of them weaker.
func holds(outer, inner *lockrequest.Request) bool {
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
