package invariants

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"gorm.io/gorm"
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
	left  bool // gormlock has left the struct unread
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
	{name: "left unread", read: true, left: true, code: "x is read in a transaction that has written it and is rolled back", meet: leaveUnread},
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

// leaveUnread lets the struct be read behind a write that is rolled back.
func leaveUnread(t testing.TB, c *cell) {
	t.Helper()
	into := reflect.New(c.shape.model).Interface()
	where, args := c.shape.condition(c.h.ptr, 1)
	err := c.w.dbs["default"].Transaction(func(tx *gorm.DB) error {
		tx = tx.Session(&gorm.Session{NewDB: true})
		must(t, tx.Exec("/* by hand */ UPDATE "+c.shape.table+" SET a = a WHERE "+where, args...).Error)
		must(t, tx.Clauses(c.shape.where(c.h.ptr)).First(into).Error)
		return errLeft
	})
	if c.h.ptr, c.h.read = into, 0; !errors.Is(err, errLeft) || c.shape.versionField(into).IsZero() {
		t.Fatalf("%+v is not unread: %v", into, err)
	}
	if c.foreign {
		c.shape.key(c.h.row(), c.n, true)
	}
}

var errLeft = errors.New("left")
