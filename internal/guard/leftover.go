package guard

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/statement"
)

// leftover is what the caller gave to a statement on a single connection, besides conditions. What the caller gives to the next statement is
// distinguishable, because it is at another address.
type leftover struct {
	columns  []string // of Select
	every    bool     // all columns are selected, by Save
	leftOut  []string // of Omit
	unscoped bool
	intent   *asked.Intent
}

// leftConflict is an ON CONFLICT of the previous statement.
type leftConflict struct{ clause.OnConflict }

// mark notes what a statement was given, and marks it.
func (u *used) mark(stmt *gorm.Statement) {
	if slices.Equal(stmt.Selects, []string{"*"}) {
		u.keepSaved(stmt)
	}
	stmt.Selects, stmt.Omits = slices.Clone(stmt.Selects), slices.Clone(stmt.Omits)
	u.leftover = givenTo(stmt)
	u.leftover.columns = stmt.Selects
	if conflict, is := stmt.Clauses["ON CONFLICT"]; is {
		if c, plain := conflict.Expression.(clause.OnConflict); plain {
			conflict.Expression = leftConflict{c}
			stmt.Clauses["ON CONFLICT"] = conflict
		}
	}
}

// ownConflict gives a Save of a slice the ON CONFLICT that it would have in its own chain. In a create of a model that is not guarded it leaves the
// one of the previous statement, as GORM does.
func ownConflict(stmt *gorm.Statement, guarded bool) {
	conflict := stmt.Clauses["ON CONFLICT"]
	switch c, left := conflict.Expression.(leftConflict); {
	case !left:
		return
	case statement.InSave():
		conflict.Expression = clause.OnConflict{UpdateAll: true}
	case !guarded:
		conflict.Expression = c.OnConflict
	}
	stmt.Clauses["ON CONFLICT"] = conflict
}

func givenTo(stmt *gorm.Statement) *leftover {
	intent, _ := stmt.Clauses[asked.ClauseName].Expression.(*asked.Intent)
	return &leftover{leftOut: stmt.Omits, unscoped: stmt.Unscoped, intent: intent}
}

// savedBy are the statements of Save on a single connection, by the list of columns that Save has put into its chain. Save runs its update on a
// copy of the chain, so nothing else in the chain shows it.
var (
	savedBy sync.Map // weak.Pointer[string] → *used
	saves   atomic.Int64
)

func (u *used) keepSaved(stmt *gorm.Statement) {
	save := &used{of: stmt.Schema, own: u.own, leftover: givenTo(stmt)}
	save.leftover.every = true
	list := weak.Make(&stmt.Selects[0])
	if _, known := savedBy.Swap(list, save); !known {
		saves.Add(1)
		runtime.AddCleanup(&stmt.Selects[0], forgetSaved, list)
	}
}

func forgetSaved(list weak.Pointer[string]) {
	savedBy.Delete(list)
	saves.Add(-1)
}

// savedBefore is the last Save by the chain of a statement, or nil.
func savedBefore(stmt *gorm.Statement) *used {
	if saves.Load() <= 0 || !slices.Equal(stmt.Selects, []string{"*"}) {
		return nil
	}
	save, _ := savedBy.Load(weak.Make(&stmt.Selects[0]))
	u, _ := save.(*used)
	return u
}

// to names the part of it that would change a write.
func (l *leftover) to(w *Write, stmt *gorm.Statement) string {
	_, conflict := stmt.Clauses["ON CONFLICT"].Expression.(leftConflict)
	every := l.every || slices.Equal(l.columns, []string{"*"}) && isLeft(stmt.Selects, l.columns)
	switch {
	case conflict && w.op == OpCreate:
		return "the ON CONFLICT"
	case every && w.op == OpUpdate && isStruct(stmt.Dest) && !statement.InSave(), !every && isLeft(stmt.Selects, l.columns):
		return "the Select"
	case isLeft(stmt.Omits, l.leftOut) && w.op != OpDelete:
		return "the Omit"
	case l.unscoped && stmt.Unscoped && len(stmt.Schema.DeleteClauses) > 0 && (w.op == OpDelete || w.op == OpUpdate && !w.hasKeys(stmt)):
		return "the Unscoped"
	case l.asks() && asked.Of(stmt) == l.intent:
		return "the clauses of gormlock"
	}
	return ""
}

func (l *leftover) asks() bool {
	return l.intent.AsksVersion() || l.intent != nil && l.intent.IgnoreFence
}

// intentLeft are the gormlock clauses that the previous statement has left. Clauses of the next statement replace them.
func (u used) intentLeft() *asked.Intent {
	if u.leftover == nil {
		return nil
	}
	return u.leftover.intent
}

// isLeft reports whether a list of columns is the one that the previous statement has left.
func isLeft(now, before []string) bool {
	return len(now) > 0 && len(before) > 0 && &now[0] == &before[0]
}
