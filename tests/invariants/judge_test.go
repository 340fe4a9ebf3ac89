package invariants

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/invariants/internal/models"
)

// violation is a promise that was not kept.
type violation struct {
	rule string
	what string
}

func (c *cell) report(rule, format string, args ...any) {
	c.found = append(c.found, violation{rule, fmt.Sprintf(format, args...)})
}

// rules names what was broken, once each.
func (c *cell) rules() []string {
	var names []string
	seen := map[string]bool{}
	for _, v := range c.found {
		if !seen[v.rule] {
			seen[v.rule] = true
			names = append(names, v.rule)
		}
	}
	return names
}

// judge holds what happened against the promises.
func (c *cell) judge(t testing.TB) {
	t.Helper()
	c.judgeAnswer()
	if c.err != nil {
		c.judgeError()
	} else {
		c.judgeChanges()
	}
	if c.undone() && len(c.changes) > 0 {
		c.report("undone", "the transaction was rolled back, and this is stored: %v", &c.changes[0])
	}
	for _, h := range c.ledger.all {
		c.judgeMemory(t, h)
	}
	for _, h := range c.ledger.all {
		c.probe(t, h)
	}
}

// undone reports whether nothing of the statement was to stay.
func (c *cell) undone() bool {
	if c.scope.name == "implicit, hook fails" {
		return c.err != nil
	}
	return c.scope.undone
}

// judgeAnswer holds the error against what a writer of this kind must be told.
func (c *cell) judgeAnswer() {
	mustFail := c.state.gone || c.state.soft || !c.state.fresh
	switch c.form.kind {
	case blind, free:
		mustFail = false
	case expects:
		mustFail = c.state.gone || c.state.soft
	case merges:
		mustFail = c.state.gone || c.state.soft || c.state.left || !c.state.read
	case upserts:
		mustFail = mustFail && c.state.read
	case checked:
	}
	atZero := c.shape.first == 0 && !c.shape.timed() && c.form.kind == upserts
	switch {
	case atZero && (!c.state.read || c.state.first && (c.state.gone || c.form.unique)):
		return // a struct at version 0 may be a new one
	case c.form.kind == merges && !c.state.read && c.shape.first == 0 && !c.shape.timed():
		return // zero may be the version that was read: nothing is changed then, or it is a conflict
	case atZero && c.form.name == "upsert, PreserveVersion" && c.state.first:
		return // it does what Rails' upserts do
	case c.form.name == "Select, version alone" && c.scope.serial:
		return // nothing is to be written, and in its snapshot the row is as it was read
	case mustFail && c.err == nil && len(c.changes) == 0 && !c.undone():
		c.report("silent no-op", "it said nil, and nothing was done")
	case mustFail && c.err == nil && !c.undone():
		// The changes show what was overwritten.
	case mustFail && c.err == nil:
		c.report("accepted", "it said nil to a struct that is %s", c.state.name)
	case c.err != nil && !mustFail && c.form.kind != free && !c.mayRefuse():
		c.report("refused", "%v", c.err)
	}
}

// mayRefuse reports whether this error is one that the documents allow.
func (c *cell) mayRefuse() bool {
	switch {
	case errors.Is(c.err, models.ErrHook), c.parted.mayRefuse(c.err):
		return true
	case c.form.name == "chain":
		return true // it may have asked for two things that exclude each other, or for what the server refuses
	case (c.state.gone || c.state.soft) && errors.Is(c.err, gorm.ErrRecordNotFound):
		return true
	case c.form.name == "twice" && c.isHidden() && errors.Is(c.err, gormlock.ErrVersionMissing):
		return true // the first write has left the struct unread
	case (c.state.gone || c.state.soft) && c.form.kind == blind && (errors.Is(c.err, gormlock.ErrStale) || errors.Is(c.err, gormlock.ErrVersionMissing)):
		return true // Touch, Save and LockRow of a row that is gone
	case strings.HasSuffix(c.form.name, "this and a new one") && c.shape.first == 0 && !autoKey(c.shape):
		return true // nothing tells the new one from one that was read
	case sameVersion(c.current, int64(0)) && strings.HasSuffix(c.form.name, "with the row's version"):
		return true // GORM takes a zero in a struct for no value
	case c.state.soft && strings.HasPrefix(c.form.name, "FirstOr"):
		return true // the unique column is taken
	case c.scope.serial && !c.state.fresh && isSerialization(c.err):
		return true
	case c.form.refusal != "" && strings.Contains(c.err.Error(), c.form.refusal):
		return true
	case c.form.name == "map with the struct's version" && !c.state.read && strings.Contains(c.err.Error(), "the version cannot be NULL"):
		return true
	case c.shape.xmin() && strings.Contains(c.err.Error(), "xmin"):
		return true
	case strings.Contains(c.form.name, "PreserveVersion") && c.state.read:
		return c.form.kind == upserts
	}
	return false
}

// judgeError: nothing of the statement stays, in the database or in memory.
func (c *cell) judgeError() {
	// The first of several statements is committed by who commits all the same, if gormlock cannot see that he does.
	if dropped := c.form.several && c.mayHide() && c.scope.name == "Begin and Commit, error dropped"; len(c.changes) > 0 && !dropped {
		c.report("error but stored", "%v, and this is stored: %v", c.err, &c.changes[0])
	}
	for _, h := range c.ledger.all {
		if changed := h.changed(); len(changed) > 0 && !c.form.several && (!c.isHidden() || !c.shape.unread(h.ptr)) {
			c.report("error but in memory", "%v, and in %s: %s", c.err, h.name, strings.Join(changed, "; "))
		}
	}
	known := errors.Is(c.err, gormlock.ErrStale) || errors.Is(c.err, gormlock.ErrVersionMissing)
	if !known && c.form.kind == checked && !c.state.fresh && !c.mayRefuse() {
		c.report("other error", "want ErrStale or ErrVersionMissing, got %v", c.err)
	}
}

// judgeChanges: what is stored is what was asked for, by somebody who had read what it replaces.
func (c *cell) judgeChanges() {
	for i := range c.changes {
		one := &c.changes[i]
		structs := c.ledger.of(one)
		if c.form.beside && one.Tab == c.shape.table && len(structs) == 0 {
			c.report("another row", "the statement is not about it: %v", one)
			continue
		}
		switch one.Op {
		case "INSERT":
			for _, h := range structs {
				if h.read != 0 && c.form.kind != blind && c.form.kind != free && !c.mayBeNew(h) {
					c.report("inserted again", "the row of %s was gone, and is back: %v", h.name, one)
				}
			}
			continue
		case "UPDATE":
			c.judgeVersion(one)
			if c.form.kind == merges && fmt.Sprint(one.Before["b"]) != fmt.Sprint(one.After["b"]) {
				c.report("silent overwrite", "%v", one)
			}
		}
		if c.form.kind == checked || c.form.kind == upserts || c.form.kind == free {
			c.judgeReader(one, structs)
		}
	}
	c.judgeEffect()
}

// mayBeNew reports whether nothing tells a struct that was read from a new one.
func (c *cell) mayBeNew(h *held) bool {
	return c.shape.first == 0 && c.form.kind == upserts && h.before != nil && sameVersion(c.shape.versionOf(h.before), int64(0))
}

func (c *cell) judgeVersion(one *change) {
	s := shapeOfTable(one.Tab)
	if s == nil {
		return
	}
	version := s.version.DBName
	if s.xmin() || strings.Contains(c.form.name, "PreserveVersion") || !changedOtherThan(one, "note", "updated_at", version) {
		return
	}
	if fmt.Sprint(one.Before[version]) == fmt.Sprint(one.After[version]) {
		c.report("version stood", "%v", one)
	}
	before, ok := one.Before[version].(float64)
	after, _ := one.After[version].(float64)
	if ok && after < before {
		c.report("version went back", "%v", one)
	}
}

func changedOtherThan(one *change, names ...string) bool {
	for column, value := range one.After {
		excluded := false
		for _, name := range names {
			excluded = excluded || name == column
		}
		if !excluded && !reflect.DeepEqual(value, one.Before[column]) {
			return true
		}
	}
	return false
}

// judgeReader: who changes a row has read the state that it was in. A transaction may change a row several times.
func (c *cell) judgeReader(one *change, structs []*held) {
	if readThis(structs, one) || c.isBlindAtZero() {
		return
	}
	for _, h := range structs {
		if h.read == 0 && (c.form.kind == upserts && !c.state.left || h.created || c.form.kind == free) {
			return
		}
	}
	for i := range c.changes {
		if c.changes[i].ID == one.Prev {
			return
		}
	}
	c.report("silent overwrite", "%v", one)
}

// isBlindAtZero reports whether an upsert on another column than the key is of a struct at version 0: that may as well be
// a new one, which the documents say, so that its row is not compared.
func (c *cell) isBlindAtZero() bool {
	return c.shape.first == 0 && !c.shape.timed() && c.form.kind == upserts && c.state.first && (c.form.unique || c.form.name == "upsert, PreserveVersion")
}

// judgeEffect: what was asked for is done.
func (c *cell) judgeEffect() {
	if c.undone() || !c.state.fresh || c.form.does == other || c.end != nil {
		return
	}
	done := false
	for i := range c.changes {
		one := &c.changes[i]
		if one.Key != c.shape.auditKey(c.h.ptr) && c.h.name == "x" && one.Key != c.shape.auditKey(c.h.before) {
			continue
		}
		switch c.form.does {
		case deletes:
			done = done || one.Op == "DELETE" || one.After["deleted_at"] != nil
		case writesA:
			done = done || one.After["a"] == float64(written)
		case other:
		}
	}
	if !done {
		c.report("silent no-op", "it said nil, and this is stored: %v", c.changes)
	}
}

// judgeMemory: a struct that is at its row's version has the row's columns, and none is ahead of its row.
func (c *cell) judgeMemory(t testing.TB, h *held) {
	t.Helper()
	row := c.w.read(t, h.shape, h.ptr)
	if row == nil || h.shape.unread(h.ptr) && !c.mustKeep() {
		return
	}
	mine, theirs := h.shape.versionOf(h.ptr), h.shape.versionOf(row)
	switch {
	case h == c.h && c.mustKeep() && !sameVersion(mine, theirs):
		c.report("not usable", "%s is at version %v, its row at %v: the next write of it is refused without need", h.name, show(mine), show(theirs))
	case sameVersion(mine, theirs):
		if names := h.differs(row); len(names) > 0 && !c.leavesOut(h) {
			c.report("not fresh", "%s is at the row's version %v, and %s", h.name, show(mine), strings.Join(names, "; "))
		}
	case !h.shape.xmin() && c.state.name != "recreated" && after(mine, theirs):
		c.report("ahead", "%s is at version %v, its row at %v", h.name, show(mine), show(theirs))
	}
}

// leavesOut reports whether a chain has stored some of a struct's columns as a new row, as it says: the others are the
// caller's, as if he had assigned them.
func (c *cell) leavesOut(h *held) bool {
	return c.form.name == "chain" && (strings.Contains(c.form.code, "Select(") || strings.Contains(c.form.code, "Omit(")) &&
		slices.ContainsFunc(c.changes, func(one change) bool {
			return one.Op == "INSERT" && one.Tab == h.shape.table && one.Key == h.shape.auditKey(h.ptr)
		})
}

// mustKeep reports whether the struct can be written on with: it was fresh, and either wrote all that it changed or was
// put back.
func (c *cell) mustKeep() bool {
	if !c.state.fresh || !c.form.keeps || c.isHidden() {
		return false
	}
	return c.undone() || c.err == nil && c.end == nil
}

// mayHide reports whether the configuration keeps the end of the transaction from gormlock's eyes: what was written in it
// counts as not read. gormlock.Transaction sees its own end.
func (c *cell) mayHide() bool {
	return (c.scope.inside || c.form.name == "upsert in batches") && !c.scope.ours && (c.config == "PlainTransactions" || strings.HasSuffix(c.config, "wrapped pool"))
}

// isHidden reports whether gormlock cannot see the end of the transaction.
func (c *cell) isHidden() bool { return c.scope.hidden || c.mayHide() }

// probe lets a rival write the row, and the writer save the struct after that, as a program would that tries again.
func (c *cell) probe(t testing.TB, h *held) {
	t.Helper()
	if c.w.read(t, h.shape, h.ptr) == nil {
		return
	}
	c.w.rivalWrites(t, h.shape, h.ptr, 777)
	was := deepCopy(reflect.ValueOf(h.ptr)).Interface()
	h.row().FieldByName("A").SetInt(4711)
	db := c.w.dbs[c.config].Omit(clause.Associations).Session(&gorm.Session{})
	if !h.shape.versionField(h.ptr).IsZero() { // an upsert takes it for a new one
		_ = db.Clauses(clause.OnConflict{Columns: h.shape.keyColumns(), UpdateAll: true}).Create(h.ptr)
	}
	err := db.Save(h.ptr).Error
	row := c.w.read(t, h.shape, h.ptr)
	switch {
	case row == nil:
		c.report("lost later", "the next Save removed the row")
	case err == nil || reflect.ValueOf(row).Elem().FieldByName("B").Int() != 777 || reflect.ValueOf(row).Elem().FieldByName("A").Int() == 4711:
		c.report("silent overwrite later", "a rival wrote b = 777, and the next Save of %s, which was at version %v, said %v: the row is %+v", h.name, show(h.shape.versionOf(was)), err, row)
	case !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing):
		c.report("other error later", "the next Save of %s said %v", h.name, err)
	}
}

func isSerialization(err error) bool {
	return errors.Is(err, gormlock.ErrStale) || strings.Contains(err.Error(), "SQLSTATE 40001")
}
