package guard

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/statement"
)

// askedHere marks clauses about versions and fences.
type askedHere struct{ intent *Intent }

var errAskedThere = errors.New("has no effect in a hook, a group of conditions or a join: put it on the statement itself")

// Mark is the mark of what a statement asks about versions and fences.
func Mark(stmt *gorm.Statement) mark.Mark {
	if intent := IntentOf(stmt); intent != nil {
		return askedHere{intent}
	}
	return nil
}

// Refusal implements mark.Mark, as do the methods below.
func (h askedHere) Refusal() error { return fmt.Errorf("gormlock: %s %w", h.intent, errAskedThere) }

// Build implements [clause.Expression].
func (h askedHere) Build(builder clause.Builder) { mark.Refuse(builder, h) }

func (h askedHere) Heeded(stmt *gorm.Statement) bool { return IntentOf(stmt).covers(h.intent) }

func (h askedHere) Covered(stmt *gorm.Statement) bool { return h.Heeded(stmt) }

func (h askedHere) Matters(write bool) bool { return write || h.intent.compares() }

func (h askedHere) Late() error { return h.Refusal() }

// compares reports whether clauses have a condition on the row.
func (i *Intent) compares() bool { return i != nil && (i.Expects || i.Unchanged != nil) }

// covers reports whether a statement with i does all that the part asks.
func (i *Intent) covers(part *Intent) bool {
	if i == part {
		return true
	}
	return i != nil &&
		(i.Ignore || !part.Ignore) && (i.touch || !part.touch) && (i.preserve || !part.preserve) &&
		(!part.Expects || i.Expects && sameVersion(i.Expected, part.Expected)) &&
		(part.Unchanged == nil || part.Unchanged == i.Unchanged) &&
		(i.ignoreFence || !part.ignoreFence) && !slices.ContainsFunc(part.tokens, func(t fence.Token) bool { return !slices.Contains(i.tokens, t) })
}

// sameVersion compares versions as an application names them.
func sameVersion(a, b any) bool {
	a, b = plainVersion(a), plainVersion(b)
	if at, ok := a.(time.Time); ok {
		bt, ok := b.(time.Time)
		return ok && at.Equal(bt)
	}
	at, tagged := a.(*tags)
	if bt, both := b.(*tags); both && !tagged {
		return sameVersion(bt, a)
	} else if tagged && !both {
		return slices.Contains(at.list, strconv.Quote(fmt.Sprint(b)))
	}
	return reflect.DeepEqual(a, b)
}

// plainVersion is a version without what it came in: a pointer, a type of the caller's, an integer of another size.
func plainVersion(version any) any {
	if _, are := version.(*tags); are {
		return version
	}
	if value, err := statement.Sent(version); err == nil && value != nil {
		version = value
	}
	v := reflect.ValueOf(version)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case v.CanInt():
		return v.Int()
	case v.CanUint() && v.Uint() <= math.MaxInt64:
		return int64(v.Uint())
	case v.IsValid():
		return v.Interface()
	}
	return version
}

// String names the clauses.
func (i *Intent) String() string {
	var names []string
	_, tagged := i.Expected.(*tags)
	for name, asked := range map[string]bool{
		"IgnoreVersion": i.Ignore, "ExpectVersion": i.Expects && !tagged, "IfMatch": tagged, "Touch": i.touch, "PreserveVersion": i.preserve,
		"IfUnchanged": i.Unchanged != nil, "Fence": len(i.tokens) > 0, "IgnoreFence": i.ignoreFence,
	} {
		if asked {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// RefuseRead fails a read that is to compare something, and one of another model than its chain has.
func RefuseRead(db *gorm.DB) {
	refuseInRead(db)
	refuseOtherRead(db)
}

func refuseInRead(db *gorm.DB) {
	if !IntentOf(db.Statement).compares() || db.Error != nil {
		return
	}
	err := fmt.Errorf("gormlock: %s: ExpectVersion, IfUnchanged and IfMatch compare nothing in a read: put them on the write, or call VerifyVersion", statement.TableName(db.Statement))
	if db.DryRun && statement.InSubQuery() {
		statement.FailSubQuery(db.Statement, err)
		return
	}
	fault.Add(db, err)
}
