package gormlock

import (
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// expectedHere stands among the conditions of what carries ExpectVersion or IfUnchanged until it is run, as lockedHere
// does. Where GORM takes the conditions of one db into the statement of another, as a group or for a join, it leaves the
// clauses behind, and nothing would be compared.
type expectedHere struct{ intent *versionIntent }

var errExpectedThere = errors.New("gormlock: ExpectVersion and IfUnchanged compare nothing on a db that gives its conditions to another statement: put them on the statement itself")

// Build implements [clause.Expression].
func (h expectedHere) Build(builder clause.Builder) {
	if stmt, ok := builder.(*gorm.Statement); ok && !versionIntentOf(stmt).covers(h.intent) {
		fail(stmt.DB, errExpectedThere)
	}
	_, _ = builder.WriteString("1=1")
}

// compares tells whether clauses say what a row must be like.
func (i *versionIntent) compares() bool { return i != nil && (i.expects || i.unchanged != nil) }

// covers reports whether a statement with i compares all that the part does.
func (i *versionIntent) covers(part *versionIntent) bool {
	return i != nil && (!part.expects || i.expects && reflect.DeepEqual(i.expected, part.expected)) &&
		(part.unchanged == nil || part.unchanged == i.unchanged)
}

// expectHere takes expectedHere away from the write that compares.
func expectHere(db *gorm.DB) {
	if intent := versionIntentOf(db.Statement); intent.compares() {
		unmark(db.Statement, func(e clause.Expression) bool {
			h, ok := e.(expectedHere)
			return ok && intent.covers(h.intent)
		})
	}
}

// refuseExpectations fails a read that is to compare something.
func refuseExpectations(db *gorm.DB) {
	if !versionIntentOf(db.Statement).compares() || db.Error != nil {
		return
	}
	expectHere(db)
	err := fmt.Errorf("gormlock: %s: ExpectVersion and IfUnchanged compare nothing in a read: put them on the write, or call VerifyVersion", tableName(db.Statement))
	if db.DryRun && isSubQuery() {
		failSubQuery(db.Statement, err)
		return
	}
	fail(db, err)
}
