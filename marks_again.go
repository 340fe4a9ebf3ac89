package gormlock

import (
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// running notes, among the clauses of a statement, that its marks are settled and it has not ended. Clones have it too: it
// says whose it is.
type running struct{ stmt *gorm.Statement }

const runningName = "gormlock:running"

func (running) Build(clause.Builder) {}

func settled(db *gorm.DB) { delete(db.Statement.Clauses, runningName) }

// scope gives the statement a scope, whatever db a scope of the caller's made of its own.
func scope(stmt *gorm.Statement, f func(*gorm.DB) *gorm.DB) {
	(&gorm.DB{Config: stmt.DB.Config, Statement: stmt}).Scopes(f)
}

// usedMeanwhile tells whether a hook, or a plugin, asks something with the conditions of the statement that runs.
func usedMeanwhile(stmt *gorm.Statement) bool {
	if stmt.Clauses[runningName].Expression != clause.Expression(running{stmt}) {
		return false
	}
	group := false
	for function := range callers() {
		if !group && strings.HasSuffix(function, "gorm.(*processor).Execute") {
			return false
		}
		group = group || strings.HasSuffix(function, "gorm.(*Statement).BuildCondition")
		if group && strings.HasSuffix(function, "gorm.(*processor).Execute") {
			return true
		}
	}
	return false
}

// markAgain is a scope that marks what the statement carries.
func markAgain(db *gorm.DB) *gorm.DB {
	if usedMeanwhile(db.Statement) {
		scope(db.Statement, markAgain)
		return db
	}
	if request := xactLockOn(db.Statement); request != nil {
		markConditions(db.Statement, lockedHere{request})
	}
	if lock, locks := rowLockOf(db.Statement); locks {
		markConditions(db.Statement, rowsLockedHere{lock})
	}
	if intent := versionIntentOf(db.Statement); intent != nil {
		markConditions(db.Statement, askedHere{intent})
	}
	return db
}
