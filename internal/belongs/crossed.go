package belongs

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/children"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Foreign keys may have a column in common, for example that of a tenant. GORM sets it from each association that it saves, so the last one decides,
// and the others are other rows then.

// foreign is a foreign key by which a struct names what it does not hold.
type foreign struct {
	relation *schema.Relationship
	key      []any
}

// namesOf is what a struct names by those of its foreign keys that have a column in common with another one.
func namesOf(m *model.Model, row reflect.Value) (all []foreign) {
	for _, relation := range m.Crossed {
		if place := statement.Place(relation.Field, row); place.IsValid() && place.IsZero() {
			all = append(all, foreign{relation, children.ForeignOf(relation, row)})
		}
	}
	return all
}

// refuseTakenAlong refuses the statement if an association that GORM has saved is not the one that the struct's foreign key names now, or if one has
// changed a part of the foreign key of another one that the struct does not hold.
func refuseTakenAlong(db *gorm.DB, m *model.Model, all keys) {
	stmt, w := db.Statement, of(db)
	if w == nil {
		w = &writing{db: db, model: m, creates: slices.Contains(stmt.BuildClauses, "VALUES")}
		w.readSource()
	}
	if w.from == form && !w.creates {
		return // it does not store them
	}
	isSaved := statement.Saving(stmt)
	for _, one := range all {
		for _, relation := range m.Crossed {
			place := statement.Place(relation.Field, one.row)
			if !place.IsValid() || place.IsZero() || !isSaved(relation) || w.holds(one.row, relation) {
				continue
			}
			if statement.KeyOfOther(relation, place) != statement.LinkOf(relation, one.row) {
				fault.Add(db, w.contradicts(&holding{relation: relation, row: one.row, place: place}))
				return
			}
		}
		read, _ := m.Shows(one.row)
		for _, was := range one.names {
			if changed := children.PartOf(was.relation, was.key, children.ForeignOf(was.relation, one.row), read); changed != nil && !isNamed(w.own, changed) {
				fault.Add(db, fmt.Errorf("gormlock: %s.%s: another association of the struct has another %s, by which the foreign key of %s would name another row of %s: set %s to the new value too if that row is meant, or set the other columns of that foreign key first",
					m.Schema.Name, was.relation.Name, changed.Name, was.relation.Name, was.relation.FieldSchema.Table, changed.Name))
				return
			}
		}
	}
}

// holds reports whether it was already decided which of the two names the row: the association or the foreign key.
func (w *writing) holds(row reflect.Value, relation *schema.Relationship) bool {
	return slices.ContainsFunc(w.held, func(h *holding) bool { return h.relation == relation && h.row.Addr().Pointer() == row.Addr().Pointer() })
}

func isNamed(values map[string]any, field *schema.Field) bool {
	_, is := statement.Named(values, field)
	return is
}
