package memory

import (
	"reflect"
	"sync/atomic"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Key is the primary key of a struct. Most are known without memory of their own.
type Key struct {
	n    int64
	name string
}

// KeyOf is that of a struct of a schema.
func KeyOf(s *schema.Schema, row reflect.Value) Key {
	if len(s.PrimaryFields) == 1 && row.IsValid() {
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

// numberIn is the field of a struct that is its key, if that is a number which stays where it is.
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
	if !row.IsValid() {
		return ""
	}
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

// held is what a place has: the row that its struct stands for, and at which version.
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

// moments number what happens to structs.
var moments atomic.Int64

// Noted is what structs were when a statement met them that changes none of them: it has read them, or was tried.
type Noted struct {
	all   []noted
	kinds []*kind
	at    int64
	tried bool
	lost  bool // it was taken back
}

type noted struct {
	kind    *kind
	row     reflect.Value
	is      held
	unkeyed bool
}

// kind is a model, and the table of the rows.
type kind struct {
	model *model.Model
	in    Table
}

// NewNoted has none yet.
func NewNoted() *Noted { return &Noted{at: moments.Add(1)} }

// IsEmpty reports whether nothing was noted.
func (n *Noted) IsEmpty() bool { return len(n.all) == 0 }

// NoteTried notes the structs of a statement that has written none of them.
func NoteTried(s *Structs) *Noted {
	n := NewNoted()
	n.tried = true
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
	n.all = append(n.all, noted{n.kinds[last], row, heldIn(m, row), isUnkeyed(m.Schema, row)})
}

// Seek looks for the structs where they are by now.
func (n *Noted) Seek(p *Places) {
	for i := range n.all {
		if one := &n.all[i]; one.kind.model.Column != nil && !one.unkeyed {
			p.seek(one.row.Type(), one.is.key).add(one.is.version)
		}
	}
}

// Lose makes unread what was read, wherever it is by now. What newer statements did is taken back before. A place that has another row by now
// is left alone, and so is one that had the same before.
func (n *Noted) Lose(p *Places) {
	n.lost = true
	for i := range n.all {
		one := &n.all[i]
		m := one.kind.model
		version := m.Column
		if version == nil || !version.Loaded(one.is.version) {
			continue
		}
		now := heldIn(m, one.row)
		if one.unkeyed || now.is(one.is) || now.key == one.is.key && !p.place(one.row).had(now, n.at) {
			version.Write(one.row, version.Unread())
		}
		if p == nil || one.unkeyed {
			continue
		}
		own := now.key == one.is.key && p.isOwn(one.row.Type(), one.is, n.at)
		for _, other := range p.by[rowOf{one.row.Type(), one.is.key}] {
			if other.row.Addr().Pointer() != one.row.Addr().Pointer() && heldIn(m, other.row).is(one.is) && other.isStrange(one.is, n.at, own) {
				version.Write(other.row, version.Unread())
			}
		}
	}
}

// keeper is a statement that had the struct of a place: it wrote it, or only noted it.
type keeper struct {
	of    *Structs
	noted *Noted
	i     int
}

// each visits what the statement found in the place, and what it left there, and when. Still says that this was not taken back.
func (k keeper) each(visit func(is held, at int64, still bool)) {
	if k.noted != nil {
		visit(k.noted.all[k.i].is, k.noted.at, !k.noted.lost)
		return
	}
	visit(heldIn(k.of.model, k.of.Was(k.i)), k.of.keptAt, true)
	visit(heldIn(k.of.model, k.of.Of(k.of.After, k.i)), k.of.leftAt, !k.of.isUndone())
}

// had reports whether a statement before that moment had this in the place.
func (p *place) had(is held, before int64) (had bool) {
	if p == nil {
		return false
	}
	for _, by := range p.keepers {
		by.each(func(was held, at int64, still bool) { had = had || still && at < before && was.is(is) })
	}
	return had
}

// isStrange reports whether a place has what did not come there by its own. If no statement had the place before that moment, the later ones
// count, if the version may be the place's own, and what was read is still where it was read. What nothing is known of is not strange.
func (p *place) isStrange(is held, since int64, own bool) bool {
	older, newer := false, false
	for _, by := range p.keepers {
		by.each(func(was held, at int64, still bool) {
			older = older || at < since
			newer = newer || at >= since && still && was.is(is) && own
		})
	}
	if older {
		return !p.had(is, since)
	}
	return len(p.keepers) > 0 && !newer
}

// isMoved reports whether a place has another struct than the transaction ever had there.
func (p *place) isMoved() bool {
	now, known := heldIn(p.model, p.row), false
	for _, by := range p.keepers {
		by.each(func(was held, _ int64, _ bool) { known = known || was.is(now) })
	}
	return len(p.keepers) > 0 && !known
}
