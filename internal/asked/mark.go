package asked

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
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/statement"
)

// here marks clauses about versions and fences.
type here struct{ intent *Intent }

var errAskedThere = errors.New("has no effect in a hook, a group of conditions or a join: put it on the statement itself")

// Mark is the mark for what a statement asks about versions and fences.
func Mark(stmt *gorm.Statement) mark.Mark {
	if intent := Of(stmt); intent != nil {
		return here{intent}
	}
	return nil
}

// Put replaces what the statement's clauses asked before by what they ask now; nil: nothing.
func Put(stmt *gorm.Statement, now, before *Intent) {
	if before != nil { // there is one mark for all clauses together
		mark.Remove(stmt, func(m mark.Mark) bool { return m == mark.Mark(here{before}) })
	}
	stmt.Clauses[ClauseName] = clause.Clause{Expression: now}
	mark.Put(stmt, here{now})
}

// Refusal implements mark.Mark, as do the methods below.
func (h here) Refusal() error { return fmt.Errorf("gormlock: %s %w", h.intent, errAskedThere) }

// Build implements [clause.Expression].
func (h here) Build(builder clause.Builder) { mark.Refuse(builder, h) }

func (h here) Heeded(stmt *gorm.Statement) bool { return Of(stmt).covers(h.intent) }

func (h here) Covered(stmt *gorm.Statement) bool { return h.Heeded(stmt) }

func (h here) Matters(write bool) bool { return write || h.intent.Compares() }

func (h here) Late() error { return h.Refusal() }

// covers reports whether a statement with i does everything that the part asks.
func (i *Intent) covers(part *Intent) bool {
	if i == part {
		return true
	}
	return i != nil &&
		(i.Ignore || !part.Ignore) && (i.Touch || !part.Touch) && (i.Preserve || !part.Preserve) &&
		(!part.Expects || i.Expects && sameVersion(i.Expected, part.Expected)) &&
		(part.Unchanged == nil || part.Unchanged == i.Unchanged) &&
		(i.IgnoreFence || !part.IgnoreFence) && !slices.ContainsFunc(part.Tokens, func(t fence.Token) bool { return !slices.Contains(i.Tokens, t) })
}

// sameVersion compares versions as an application names them.
func sameVersion(a, b any) bool {
	a, b = plainVersion(a), plainVersion(b)
	if at, ok := a.(time.Time); ok {
		bt, ok := b.(time.Time)
		return ok && at.Equal(bt)
	}
	at, tagged := a.(*Tags)
	if bt, both := b.(*Tags); both && !tagged {
		return sameVersion(bt, a)
	} else if tagged && !both {
		return slices.Contains(at.List, strconv.Quote(fmt.Sprint(b)))
	}
	return reflect.DeepEqual(a, b)
}

// plainVersion is a version without its wrapping: a pointer, a type of the caller, an integer of another size.
func plainVersion(version any) any {
	if _, are := version.(*Tags); are {
		return version
	}
	if value, err := statement.Sent(version); err == nil {
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
	_, tagged := i.Expected.(*Tags)
	for name, asked := range map[string]bool{
		"IgnoreVersion": i.Ignore, "ExpectVersion": i.Expects && !tagged, "IfMatch": tagged, "Touch": i.Touch, "PreserveVersion": i.Preserve,
		"IfUnchanged": i.Unchanged != nil, "Fence": len(i.Tokens) > 0, "IgnoreFence": i.IgnoreFence,
	} {
		if asked {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
