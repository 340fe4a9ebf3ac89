package invariants

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"gorm.io/gorm"
)

// cell is one crossing of the matrix, and what came out of it.
type cell struct {
	w       *world
	shape   *shape
	foreign bool // the program spells keys in its own way
	form    *form
	state   *state
	scope   *scope
	config  string

	n       int64 // names the row
	ctx     context.Context
	ledger  ledger
	h       *held // the struct
	second  *held // that of a second row, always fresh
	parted  parted
	current any // the version that the row has when the statement comes
	row     any // the row then; nil where it is gone

	err     error // of the statement
	affects bool  // it said nil
	end     error // of what is around it
	changes []change
	found   []violation
}

func (c *cell) name() string {
	spelled := ""
	if c.foreign {
		spelled = " respelled"
	}
	return fmt.Sprintf("%s | %s%s | %s | %s | %s", c.form.name, c.shape.name, spelled, c.state.name, c.scope.name, c.config)
}

// makesSense reports whether the parts of a cell fit.
func (c *cell) makesSense() bool {
	switch {
	case c.form.only != nil && !c.form.only(c.shape),
		c.state.only != nil && !c.state.only(c.shape),
		c.scope.only != nil && !c.scope.only(c.shape),
		c.scope.config != nil && !c.scope.config(c.config),
		c.foreign && !c.shape.foreign,
		c.form.inside && !c.scope.inside,
		c.form.inside && c.state.soft, // what is read is what is not there
		c.scope.readInside && !c.state.read:
		return false
	}
	return true
}

// seedTime is the version of rows that have a time as one: long ago, and no rounder than any column.
var seedTime = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)

func (c *cell) u() string { return fmt.Sprintf("u-%d", c.n) }

// newRow is a struct of a row as it is stored at first.
func (c *cell) newRow(n int64, first bool) reflect.Value {
	row := reflect.New(c.shape.model)
	c.shape.key(row.Elem(), n, false)
	row.Elem().FieldByName("A").SetInt(10)
	row.Elem().FieldByName("B").SetInt(20)
	row.Elem().FieldByName("U").SetString(fmt.Sprintf("u-%d", n))
	c.parted.own(row.Elem())
	if c.shape.has("UpdatedAt") {
		row.Elem().FieldByName("UpdatedAt").Set(reflect.ValueOf(seedTime))
	}
	version := c.shape.first
	if !first {
		version += 4
	}
	switch {
	case c.shape.xmin():
	case c.shape.timed():
		c.shape.setVersion(row.Interface(), seedTime)
	default:
		c.shape.setVersion(row.Interface(), version)
	}
	return row
}

// newcomer is a struct without a row.
func (c *cell) newcomer() *held {
	row := reflect.New(c.shape.model)
	n := c.w.keys.Add(1)
	if !autoKey(c.shape) {
		c.shape.key(row.Elem(), n, c.foreign)
	}
	h := c.ledger.add("n", c.shape, row.Interface(), 0)
	h.created = true
	h.assign("A", int64(written))
	h.assign("B", int64(20))
	h.assign("U", fmt.Sprintf("u-%d", n))
	c.parted.own(h.row())
	return h
}

// keyless is a struct that knows no more of its row than a unique column.
func (c *cell) keyless() *held {
	h := c.stranger()
	h.assign("U", c.u())
	h.assign("A", int64(written))
	return h
}

// stranger is an empty struct.
func (c *cell) stranger() *held {
	return c.ledger.add("k", c.shape, reflect.New(c.shape.model).Interface(), 0)
}

// fresh gives the writer an empty struct to read into.
func (c *cell) fresh() any {
	c.h.ptr = reflect.New(c.shape.model).Interface()
	c.h.keep()
	c.h.mine = nil
	return c.h.ptr
}

// seed stores the rows.
func (c *cell) seed(t testing.TB) {
	t.Helper()
	c.ctx = context.Background()
	c.n = c.w.keys.Add(1)
	c.parted.seed(t, c)
	c.w.insert(t, c.shape, c.newRow(c.n, c.state.first).Interface())
	c.h = c.ledger.add("x", c.shape, c.newRow(c.n, false).Interface(), 0)
	if c.form.beside { // it is as the struct has read its own row
		c.w.insert(t, c.shape, c.newRow(c.w.keys.Add(1), c.state.first).Interface())
	}
	if c.form.two {
		n := c.w.keys.Add(1)
		c.w.insert(t, c.shape, c.newRow(n, false).Interface())
		c.second = c.ledger.add("y", c.shape, c.newRow(n, false).Interface(), 0)
	}
}

// load reads the structs, and lets happen what the state says.
func (c *cell) load(t testing.TB, db *gorm.DB) {
	t.Helper()
	for _, h := range c.ledger.all {
		h.read = c.w.state(t, c.shape, h.ptr)
		into := reflect.New(c.shape.model).Interface()
		must(t, db.Clauses(c.shape.where(h.ptr)).First(into).Error)
		h.ptr = into
	}
	if c.foreign {
		c.shape.key(c.h.row(), c.n, true)
	}
	c.parted.hold(t, c)
	if c.state.meet != nil {
		c.state.meet(t, c)
	}
	c.row = c.w.read(t, c.shape, c.h.ptr)
	c.current = c.shape.versionOf(c.newRow(c.n, false).Interface())
	if c.row != nil {
		c.current = c.shape.versionOf(c.row)
	}
	if c.shape.xmin() {
		c.current = uint32(c.current.(int64))
	}
}

// run does what the cell says, and judges it.
func (c *cell) run(t testing.TB) {
	t.Helper()
	c.seed(t)
	db := c.w.dbs[c.config]
	if !c.scope.readInside {
		c.load(t, db)
	}
	var statement func(tx *gorm.DB) error
	from := c.w.now(t)
	once := func(tx *gorm.DB) error {
		if statement == nil {
			if c.scope.readInside {
				c.load(t, tx)
				from = c.w.now(t)
			}
			for _, h := range c.ledger.all {
				h.keep()
			}
			statement = c.form.prepare(c)
			for _, h := range c.ledger.all {
				h.keep()
			}
		}
		return c.answerOf(statement, tx)
	}
	c.end = c.scope.run(c, db, once)
	c.changes = c.written(c.w.changes(t, from, c.w.now(t)))
	c.parted.judge(t, c)
	c.judge(t)
}

// answerOf runs a statement and keeps its error. A panic is one, and is reported.
func (c *cell) answerOf(statement func(tx *gorm.DB) error, tx *gorm.DB) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
			c.report("panic", "%v", r)
		}
		c.err = err
	}()
	return statement(tx)
}

// written are the changes of the writer.
func (c *cell) written(all []change) []change {
	var own []change
	for _, one := range all {
		if one.Writer == "writer" {
			own = append(own, one)
		}
	}
	return own
}
