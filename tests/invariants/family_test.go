package invariants

import (
	"reflect"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/invariants/internal/models"
)

type (
	Order    = models.Order
	Customer = models.Customer
	Line     = models.Line
	Note     = models.Note
	Tag      = models.Tag
)

var (
	orders    = shapeOf(models.Plainly[Order](), 1, intKey)
	customers = shapeOf(models.Plainly[Customer](), 1, intKey)
	lines     = shapeOf(models.Plainly[Line](), 1, intKey)
	notes     = shapeOf(models.Plainly[Note](), 1, intKey)
	tags      = shapeOf(models.Plainly[Tag](), 1, intKey)
	family    = []*shape{orders, customers, lines, notes, tags}
)

// migrateLoose makes the tables of shapes without foreign keys: a rival can delete each row, whatever belongs to it. It returns what
// makes more such tables.
func (w *world) migrateLoose(t testing.TB, shapes []*shape) *gorm.DB {
	t.Helper()
	loose := w.plain.Session(&gorm.Session{})
	config := *loose.Config
	config.DisableForeignKeyConstraintWhenMigrating = true
	loose.Config = &config
	for _, s := range shapes {
		must(t, loose.AutoMigrate(s.pointer()))
		must(t, w.audit(s.table, s.schema.PrimaryFieldDBNames))
	}
	return loose
}

// household is an order with all that belongs to it, as a writer has read it.
type household struct {
	order    *Order
	customer *Customer
	line     *Line // what is met by a rival, if it is the lines' turn
	other    *Line
	note     *Note
	tag      *Tag
	held     map[string]*held // by relation
}

// relatives are what a rival can write: the order, or one of what belongs to it.
var relatives = []string{"order", "customer", "line", "note", "tag"}

// storeHousehold stores an order with all that belongs to it.
func (w *world) storeHousehold(t testing.TB) int64 {
	t.Helper()
	n := w.keys.Add(8)
	w.exec(t, "INSERT INTO customers (id, a, b, version) VALUES ($1, 10, 20, 5)", n)
	w.exec(t, "INSERT INTO orders (id, a, b, version, customer_id) VALUES ($1, 10, 20, 5, $1)", n)
	w.exec(t, "INSERT INTO lines (id, a, b, version, order_id) VALUES ($1, 10, 20, 5, $1), ($1 + 1, 10, 20, 3, $1)", n)
	w.exec(t, "INSERT INTO notes (id, a, b, version, order_id) VALUES ($1, 10, 20, 5, $1)", n)
	w.exec(t, "INSERT INTO tags (id, a, b, version) VALUES ($1, 10, 20, 5)", n)
	w.exec(t, "INSERT INTO order_tags (order_id, tag_id) VALUES ($1, $1)", n)
	return n
}

// readHousehold reads an order as a program would. What does not belong to it any more is read by its key, if it is there.
func (w *world) readHousehold(t testing.TB, db *gorm.DB, n int64, l *ledger) *household {
	t.Helper()
	h := &household{order: &Order{}, held: map[string]*held{}}
	must(t, db.Preload("Customer").Preload("Lines", func(db *gorm.DB) *gorm.DB { return db.Order("id") }).
		Preload("Note").Preload("Tags").First(h.order, n).Error)
	h.customer, h.line, h.other, h.note, h.tag = &Customer{}, &Line{}, &Line{}, &Note{}, &Tag{}
	take(h.customer, n, []*Customer{h.order.Customer}, &h.customer)
	take(h.line, n, h.order.Lines, &h.line)
	take(h.other, n+1, h.order.Lines, &h.other)
	take(h.note, n, []*Note{h.order.Note}, &h.note)
	take(h.tag, n, h.order.Tags, &h.tag)
	for _, one := range []struct {
		name string
		s    *shape
		ptr  any
	}{
		{"order", orders, h.order}, {"customer", customers, h.customer}, {"line", lines, h.line}, {"other", lines, h.other}, {"note", notes, h.note}, {"tag", tags, h.tag},
	} {
		held := l.add(one.name, one.s, one.ptr, 0)
		if held.shape.unread(one.ptr) {
			err := db.Where("id = ?", held.row().FieldByName("ID").Int()).Limit(1).Find(one.ptr)
			must(t, err.Error)
		}
		if !held.shape.unread(one.ptr) {
			held.read = w.state(t, one.s, one.ptr)
		}
		h.held[one.name] = held
	}
	return h
}

// take finds the struct with this key among those that came with the order, else it is the empty one with the key.
func take[T any](empty *T, id int64, among []*T, to **T) {
	reflect.ValueOf(empty).Elem().FieldByName("ID").SetInt(id)
	*to = empty
	for _, one := range among {
		if one != nil && reflect.ValueOf(one).Elem().FieldByName("ID").Int() == id {
			*to = one
		}
	}
}

// assign sets A of what a program has at hand.
func (h *household) assign(names ...string) {
	for _, name := range names {
		h.held[name].assign("A", written)
	}
}

// all are the names of what belongs to an order, and its own.
var all = []string{"order", "customer", "line", "other", "note", "tag"}
