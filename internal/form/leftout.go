package form

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// LeftOut returns the error of an update whose values have an association that GORM leaves out although the caller asks for it. An association may
// be left out if it only repeats the foreign key, or if the updated struct holds it too.
func (w Write) LeftOut() error {
	switch given := w.Stmt.Dest.(type) {
	case map[string]any:
		return w.saysNil(given)
	case *map[string]any:
		if given != nil {
			return w.leftOutOfMap(*given)
		}
	}
	given := reflect.Indirect(reflect.ValueOf(w.Stmt.Dest))
	if given.Kind() != reflect.Struct || statement.SamePointer(w.Stmt.Model, w.Stmt.Dest) {
		return nil
	}
	v, are := w.valuesIn(given)
	if !are || !statement.HoldsAssociation(v.schema, given) {
		return nil
	}
	for _, relation := range statement.OwnRelations(v.schema) {
		if place := statement.Place(relation.Field, given); place.IsValid() && !place.IsZero() && v.loses(relation, place) {
			return fmt.Errorf("gormlock: %s.%s: GORM leaves out an association in the values of an update: assign it to the struct and use Save, or use Updates(map[string]any{%q: …}), or Omit(%q); if it is a foreign key that changes, set that",
				w.Model.Schema.Name, relation.Name, relation.Name, relation.Name)
		}
	}
	return nil
}

// leftOutOfMap does the same for a pointer to a map. GORM takes a belongs-to from a map only if it is given by value.
func (w Write) leftOutOfMap(given map[string]any) error {
	for _, relation := range w.Model.Schema.Relationships.BelongsTo {
		if given[relation.Name] != nil {
			return fmt.Errorf("gormlock: %s.%s: GORM leaves out an association in a pointer to a map: give Updates the map itself", w.Model.Schema.Name, relation.Name)
		}
	}
	return nil
}

// saysNil returns the error of a map with nil for an association: GORM leaves the foreign key as it is.
func (w Write) saysNil(given map[string]any) error {
	if !statement.HasRelations(w.Model.Schema) {
		return nil
	}
	for name, value := range given {
		if value == nil && w.Model.Schema.Relationships.Relations[name] != nil {
			return fmt.Errorf("gormlock: %s.%s: GORM unlinks nothing where a map says nil of an association: name its foreign key, or use Association(%q).Clear()",
				w.Model.Schema.Name, name, name)
		}
	}
	return nil
}

// loses reports whether the association has values that are not written.
func (v *values) loses(relation *schema.Relationship, place reflect.Value) bool {
	own := statement.OwnRelations(v.Model.Schema)
	at := slices.IndexFunc(own, func(r *schema.Relationship) bool { return r.Name == relation.Name })
	if at < 0 || !v.Has(relation.Name) || slices.Contains(v.Model.Roots, own[at]) || place.Kind() == reflect.Slice && place.Len() == 0 {
		return false // the associations of roots are refused where the version of a root moves
	}
	if relation.Type == schema.BelongsTo && v.writeKey(relation, place) {
		return false
	}
	for i := range v.Structs.Count {
		if !isHeld(own[at], v.Structs.Row(i), relation, place) {
			return true
		}
	}
	return v.Structs.Count == 0
}

// writeKey reports whether the foreign key in the values belongs to the association, and is written.
func (v *values) writeKey(relation *schema.Relationship, place reflect.Value) bool {
	if !statement.HasKeyOfOther(relation, place) || !statement.Refers(relation, v.given, place) {
		return false
	}
	return !slices.ContainsFunc(relation.References, func(ref *schema.Reference) bool { return !v.Has(ref.ForeignKey.DBName) })
}

// isHeld reports whether a struct holds the same association as the values, or belongs to it already.
func isHeld(own *schema.Relationship, row reflect.Value, relation *schema.Relationship, place reflect.Value) bool {
	if own.Type == schema.BelongsTo && relation.Type == schema.BelongsTo {
		return statement.HasKeyOfOther(relation, place) && statement.LinkOf(own, row) == statement.KeyOfOther(relation, place)
	}
	held := statement.Place(own.Field, row)
	return held.IsValid() && reflect.DeepEqual(held.Interface(), place.Interface())
}
