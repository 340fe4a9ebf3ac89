package aggregate

import (
	"fmt"
	"reflect"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/whereabouts"
)

// holding is the struct of a root in a field of a part.
type holding struct {
	relation *schema.Relationship
	key      []any
	place    reflect.Value
	follows  bool  // it is not compared, and gets the new version if it has the one that the root moves from
	copied   bool  // GORM copies it into the caller's struct, and a rollback does not reach the copy
	err      error // it was not read
}

// held returns the struct in the field of a relation; it is not valid if there is none.
func held(relation *schema.Relationship, row reflect.Value) reflect.Value {
	place := statement.Place(relation.Field, row)
	for place.IsValid() && place.Kind() == reflect.Pointer {
		place = place.Elem()
	}
	if !place.IsValid() || place.IsZero() {
		return reflect.Value{}
	}
	return place
}

// hold remembers the structs of roots in the caller's structs. Such a struct is compared if its root moves.
func (p *part) hold(value reflect.Value) {
	statement.EachStruct(value, func(row reflect.Value) {
		if row.Type() != p.model.Schema.ModelType {
			return
		}
		for _, relation := range p.model.Roots {
			p.holdOf(relation, row)
		}
	})
}

func (p *part) holdOf(relation *schema.Relationship, row reflect.Value) {
	place, m := held(relation, row), model.OfSchema(p.db, relation.FieldSchema)
	if !place.IsValid() || m.Column == nil {
		return
	}
	memory.Recover(m, place)
	copied := whereabouts.IsCopied(p.db.Statement, place)
	key, _ := statement.KeyOf(p.db.Statement, relation.FieldSchema, place)
	if key == nil {
		return
	}
	h := holding{relation: relation, key: key, place: place, copied: copied, follows: asked.Of(p.db.Statement).Merges()}
	switch loaded := m.Column.Loaded(m.Column.Read(place)); {
	case !loaded && (h.follows || !p.isUnread(m, place)), h.follows && !place.CanAddr():
		return
	case !loaded:
		h.err = fmt.Errorf("%w: %s: the root in %s.%s was not read from its row: read it first, or give it nothing but its key",
			fault.ErrVersionMissing, fault.Row(m.Schema.Table, m.Schema.PrimaryFieldDBNames, keyMap(m.Schema, key)), p.model.Schema.Name, relation.Name)
	case !place.CanAddr():
		h.place = reflect.New(place.Type()).Elem() // it is compared, and memory cannot follow
		h.place.Set(place)
	}
	p.held = append(p.held, h)
}

// take gives a root its structs.
func (p *part) take(r *root) error {
	r.loaded, r.following, r.copied = nil, nil, nil
	for _, h := range p.held {
		switch {
		case h.relation.FieldSchema.Table != r.schema.Table || !p.isSame(h.relation, h.key, r.key):
		case h.err != nil:
			return h.err
		case h.follows:
			r.following = append(r.following, h.place)
		default:
			r.key, r.loaded = h.key, append(r.loaded, h.place)
			if h.copied {
				r.copied = append(r.copied, h.place)
			}
		}
	}
	return nil
}
