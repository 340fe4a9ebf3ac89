package gormlock

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/fence"
)

// askedHere is the mark of clauses about versions and fences.
type askedHere struct{ intent *versionIntent }

var errAskedThere = errors.New("is not heeded in a hook, a group of conditions or a join: put it on the statement itself")

func (h askedHere) refusal() error { return fmt.Errorf("gormlock: %s %w", h.intent, errAskedThere) }

// Build implements [clause.Expression].
func (h askedHere) Build(builder clause.Builder) { refuseMark(builder, h) }

func (h askedHere) heeded(stmt *gorm.Statement) bool { return versionIntentOf(stmt).covers(h.intent) }

// compares tells whether clauses say what a row must be like.
func (i *versionIntent) compares() bool { return i != nil && (i.expects || i.unchanged != nil) }

// covers reports whether a statement with i does all that the part asks.
func (i *versionIntent) covers(part *versionIntent) bool {
	if i == part {
		return true
	}
	return i != nil &&
		(i.ignore || !part.ignore) && (i.touch || !part.touch) && (i.preserve || !part.preserve) &&
		(!part.expects || i.expects && sameVersion(i.expected, part.expected)) &&
		(part.unchanged == nil || part.unchanged == i.unchanged) &&
		(i.ignoreFence || !part.ignoreFence) && !slices.ContainsFunc(part.tokens, func(t fence.Token) bool { return !slices.Contains(i.tokens, t) })
}

// sameVersion compares versions as an application names them.
func sameVersion(a, b any) bool {
	if at, ok := a.(time.Time); ok {
		bt, ok := b.(time.Time)
		return ok && at.Equal(bt)
	}
	av, bv := reflect.ValueOf(a), reflect.ValueOf(b)
	if a != nil && b != nil && av.CanInt() && bv.CanInt() {
		return av.Int() == bv.Int()
	}
	return reflect.DeepEqual(a, b)
}

// String names the clauses.
func (i *versionIntent) String() string {
	var names []string
	for name, asked := range map[string]bool{
		"IgnoreVersion": i.ignore, "ExpectVersion": i.expects, "Touch": i.touch, "PreserveVersion": i.preserve,
		"IfUnchanged": i.unchanged != nil, "Fence": len(i.tokens) > 0, "IgnoreFence": i.ignoreFence,
	} {
		if asked {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// refuseExpectations fails a read that is to compare something.
func refuseExpectations(db *gorm.DB) {
	if !versionIntentOf(db.Statement).compares() || db.Error != nil {
		return
	}
	err := fmt.Errorf("gormlock: %s: ExpectVersion and IfUnchanged compare nothing in a read: put them on the write, or call VerifyVersion", tableName(db.Statement))
	if db.DryRun && isSubQuery() {
		failSubQuery(db.Statement, err)
		return
	}
	fail(db, err)
}
