package memory

import (
	"reflect"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Key is the primary key of a struct. For most keys it allocates nothing.
type Key struct {
	n    int64
	name string
}

// KeyOf is the key of a struct of a schema.
func KeyOf(s *schema.Schema, row reflect.Value) Key {
	if len(s.PrimaryFields) == 1 {
		switch place := statement.Place(s.PrimaryFields[0], row); {
		case !place.IsValid() || place.Type().PkgPath() != "": // a type of its own may have several values for one key
		case place.CanInt():
			return Key{n: place.Int()}
		case place.CanUint():
			return Key{n: int64(place.Uint())} //nolint:gosec // the same bits
		case place.Kind() == reflect.String:
			return Key{name: place.String()}
		}
	}
	return Key{name: keyIn(s, row)}
}

// numberIn is the field of a struct that is its key, if that is a number that is not behind a pointer.
func numberIn(s *schema.Schema, row reflect.Value) reflect.Value {
	if len(s.PrimaryFields) != 1 || statement.ThroughPointer(s.PrimaryFields[0]) {
		return reflect.Value{}
	}
	if field := statement.Place(s.PrimaryFields[0], row); field.CanInt() && field.Type().PkgPath() == "" {
		return field
	}
	return reflect.Value{}
}

// KeyIn is the key of a struct as a string.
func KeyIn(m *model.Model, row reflect.Value) string { return keyIn(m.Schema, row) }

func keyIn(s *schema.Schema, row reflect.Value) string {
	key := make([]any, len(s.PrimaryFields))
	for i, field := range s.PrimaryFields {
		if place := statement.Place(field, row); place.IsValid() {
			key[i] = place.Interface()
		}
	}
	return statement.KeyName(key)
}

// isUnkeyed reports whether a struct has no key.
func isUnkeyed(s *schema.Schema, row reflect.Value) bool {
	for _, field := range s.PrimaryFields {
		if place := statement.Place(field, row); place.IsValid() && !place.IsZero() {
			return false
		}
	}
	return true
}

// held is the content of a place: the row that its struct stands for, and its version.
type held struct {
	key     Key
	version column.Value
}

func heldIn(m *model.Model, row reflect.Value) held {
	return held{KeyOf(m.Schema, row), versionIn(m, row)}
}

func versionIn(m *model.Model, row reflect.Value) (v column.Value) {
	if m.Column != nil {
		v = m.Column.Read(row)
	}
	return v
}

func (h held) is(other held) bool { return h.key == other.key && h.version.Equal(other.version) }

// Noted is what structs were when a statement met them without changing them: it has read them, or tried to write them.
type Noted struct {
	all   []noted
	kinds []*kind
	at    int64 // the moment
	read  bool  // a query read them, whole
}

type noted struct {
	kind    *kind
	row     reflect.Value
	is      held
	unkeyed bool
	part    bool // it is part of a form, which loses its version in another way
}

// kind is a model, and the table of the rows.
type kind struct {
	model *model.Model
	in    Table
}

// NewNoted returns an empty Noted.
func NewNoted() *Noted { return &Noted{at: journal.Moment()} }

// NewRead returns an empty Noted for structs that a query reads whole.
func NewRead() *Noted { return &Noted{at: journal.Moment(), read: true} }

// IsEmpty reports whether nothing was noted.
func (n *Noted) IsEmpty() bool { return len(n.all) == 0 }

// NoteTried notes the structs of a statement that has written none of them. They are as the statement found them when it began; 0: that moment is
// not known.
func NoteTried(s *Structs, began int64) *Noted {
	n := NewNoted()
	if began > 0 {
		n.at = began
	}
	for i := range s.Count {
		n.Note(s.model, s.In, s.Row(i))
	}
	return n
}

// Note notes a struct of a model.
func (n *Noted) Note(m *model.Model, in Table, row reflect.Value) {
	if !row.IsValid() || !row.CanAddr() || row.Type() != m.Schema.ModelType {
		return
	}
	last := len(n.kinds) - 1
	if last < 0 || n.kinds[last].model != m || n.kinds[last].in != in {
		n.kinds, last = append(n.kinds, &kind{m, in}), last+1
	}
	n.all = append(n.all, noted{n.kinds[last], row, heldIn(m, row), isUnkeyed(m.Schema, row), false})
}

// NotePart notes a struct of a model that is a form of the query's model, or is within one.
func (n *Noted) NotePart(m *model.Model, in Table, row reflect.Value) {
	before := len(n.all)
	if n.Note(m, in, row); len(n.all) > before {
		n.all[before].part = true
	}
}

// Seek looks for where the structs are now.
func (n *Noted) Seek(p *Places) {
	for i := range n.all {
		if one := &n.all[i]; one.kind.model.Column != nil && !one.unkeyed {
			p.seek(one.row.Type(), one.is.key).add(one.is.version)
			p.note(p.read, p.stateOf(one.row.Type(), one.kind.in, one.is).spelling(), n.at)
		}
	}
}

// Lose makes the structs that were read unread, wherever they are now. Newer statements are undone before. A place that has another row by now is
// left alone. So is a version that the row had before the first of the undone writes.
func (n *Noted) Lose(p *Places) {
	for i := range n.all {
		one := &n.all[i]
		version := one.kind.model.Column
		if version == nil || !version.Loaded(one.is.version) {
			continue
		}
		now := heldIn(one.kind.model, one.row)
		if one.part {
			p.lose(one.row.Type(), one.kind.in, one.is)
			continue
		}
		respelt := now.key.spelling() == one.is.key.spelling() && !p.predates(one.row.Type(), one.kind.in, now)
		if !n.IsUsed(p, one.row) && (one.unkeyed || now.is(one.is) || respelt || p.mayBeRespelt(one.kind.model, one.kind.in, one.is, now)) {
			version.Write(one.row, version.Unread())
		}
		if p != nil && !one.unkeyed {
			p.lose(one.row.Type(), one.kind.in, one.is)
		}
	}
}

// keeper is a statement that had the struct of a place: it wrote it, or only noted it.
type keeper struct {
	of    *Structs
	noted *Noted
	i     int
}

// left is what the statement left in the place, or found there if the statement is undone.
func (k keeper) left() (is held, row reflect.Value) {
	if k.noted != nil {
		return k.noted.all[k.i].is, reflect.Value{}
	}
	row = k.of.Of(k.of.After, k.i)
	if k.of.undone {
		row = k.of.Was(k.i)
	}
	return heldIn(k.of.model, row), row
}

// copies are the copies to which left belongs.
func (k keeper) copies() *structCopies {
	if k.of.undone {
		return k.of.before
	}
	return k.of.After
}

func (k keeper) at() int64 {
	if k.noted != nil {
		return k.noted.at
	}
	return k.of.leftAt
}
