package invariants

import (
	"reflect"
	"testing"
	"time"
)

// state is how the struct and its row stand to each other when the statement comes.
type state struct {
	name  string
	code  string
	first bool // the row is at its first version
	only  func(s *shape) bool
	// meet is what happens between the reading and the statement.
	meet  func(t testing.TB, c *cell)
	fresh bool // the struct is what its row is
	read  bool // the struct was read
	gone  bool
	soft  bool // the row is soft-deleted
}

var states = []state{
	{name: "fresh", fresh: true, read: true},
	{name: "stale", read: true, code: "rival: UPDATE … SET b = 21, version = version + 1", meet: rivalWrites},
	{name: "unread", code: "x = T{key, U: x.U, Version: zero}", meet: forget},
	{name: "gone", read: true, gone: true, code: "rival: DELETE", meet: rivalDeletes},
	{name: "recreated", read: true, code: "rival: DELETE; INSERT … b = 21, version = first", meet: rivalRecreates},
	{name: "soft-deleted", read: true, soft: true, code: "rival: UPDATE … SET deleted_at = now(), version = version + 1", meet: rivalSoftDeletes, only: isSoft},
	{name: "fresh, first version", fresh: true, read: true, first: true},
	{name: "stale, first version", read: true, first: true, code: "rival: UPDATE … SET b = 21, version = version + 1", meet: rivalWrites},
	{name: "gone, first version", read: true, gone: true, first: true, code: "rival: DELETE", meet: rivalDeletes},
}

const rivals = 21 // what rivals write into b

func rivalWrites(t testing.TB, c *cell) { c.w.rivalWrites(t, c.shape, c.h.ptr, rivals) }

func rivalDeletes(t testing.TB, c *cell) { c.w.rivalDeletes(t, c.shape, c.h.ptr) }

func rivalSoftDeletes(t testing.TB, c *cell) {
	where, args := c.shape.condition(c.h.ptr, 1)
	c.w.exec(t, "UPDATE "+c.shape.table+" SET deleted_at = now()"+c.shape.moves()+" WHERE "+where, args...)
}

func rivalRecreates(t testing.TB, c *cell) {
	c.w.rivalDeletes(t, c.shape, c.h.ptr)
	again := c.newRow(c.n, true)
	again.Elem().FieldByName("B").SetInt(rivals)
	if c.shape.timed() {
		c.shape.setVersion(again.Interface(), seedTime.Add(time.Hour))
	}
	c.w.insert(t, c.shape, again.Interface())
}

// forget makes the struct one that was never read: a program has nothing but its key.
func forget(_ testing.TB, c *cell) {
	row := reflect.New(c.shape.model)
	c.shape.key(row.Elem(), c.n, c.foreign)
	c.h.ptr, c.h.read = row.Interface(), 0
	c.h.assign("U", c.u())
}
