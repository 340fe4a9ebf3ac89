package guard

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// form is the struct from which an update takes its values, if it is another than the updated one. GORM writes its columns,
// and leaves out its associations.
type form struct {
	plan       *plan
	stmt       *gorm.Statement
	values     reflect.Value
	selected   map[string]bool
	restricted bool
}

// refuseLeftOut fails an update of which GORM would leave out a part that is asked for, before anything is stored.
func (w *Write) refuseLeftOut(db *gorm.DB) {
	for _, err := range [...]error{w.leftOut(db.Statement), w.barred(db.Statement)} {
		if db.Error == nil && err != nil {
			journal.DoomWithParent(db, err)
			fault.Add(db, err)
		}
	}
}

// leftOut returns the error of an update whose values have an association that GORM leaves out although it is asked for. What
// says no more than the foreign key, or what the updated struct holds too, need not be written.
func (p *plan) leftOut(stmt *gorm.Statement) error {
	if !p.version.is() || p.intent.Touches() {
		return nil
	}
	switch values := stmt.Dest.(type) {
	case map[string]any:
		return p.saysNil(values)
	case *map[string]any:
		if values != nil {
			return p.leftOutOfMap(*values)
		}
	}
	values := reflect.Indirect(reflect.ValueOf(stmt.Dest))
	if values.Kind() != reflect.Struct || statement.SamePointer(stmt.Model, stmt.Dest) {
		return nil
	}
	s := p.schemaOf(stmt, values)
	if s == nil || !statement.HoldsAssociation(s, values) {
		return nil
	}
	f := form{plan: p, stmt: stmt, values: values}
	f.selected, f.restricted = stmt.SelectAndOmitColumns(false, true)
	for _, relation := range statement.OwnRelations(s) {
		if place := statement.Place(relation.Field, values); place.IsValid() && !place.IsZero() && f.isLost(relation, place) {
			return fmt.Errorf("gormlock: %s.%s: GORM leaves out an association in the values of an update: assign it to the struct and use Save, or use Updates(map[string]any{%q: …}), or Omit(%q); if it is a foreign key that changes, set that",
				p.model.Schema.Name, relation.Name, relation.Name, relation.Name)
		}
	}
	return nil
}

// schemaOf is the schema of the values. It is nil if GORM cannot parse their type: then it knows no associations of theirs.
func (p *plan) schemaOf(stmt *gorm.Statement, values reflect.Value) *schema.Schema {
	if values.Type() == p.model.Schema.ModelType {
		return p.model.Schema
	}
	parsed := &gorm.Statement{DB: stmt.DB}
	if err := parsed.Parse(stmt.Dest); err != nil {
		return nil
	}
	return parsed.Schema
}

// leftOutOfMap does so for a pointer to a map. GORM takes what a struct belongs to only from the map itself.
func (p *plan) leftOutOfMap(values map[string]any) error {
	for _, relation := range p.model.Schema.Relationships.BelongsTo {
		if values[relation.Name] != nil {
			return fmt.Errorf("gormlock: %s.%s: GORM leaves out an association in a pointer to a map: give Updates the map itself", p.model.Schema.Name, relation.Name)
		}
	}
	return nil
}

// saysNil returns the error of a map that says nil of an association: GORM leaves the foreign key as it is.
func (p *plan) saysNil(values map[string]any) error {
	for name, value := range values {
		if value == nil && p.model.Schema.Relationships.Relations[name] != nil {
			return fmt.Errorf("gormlock: %s.%s: GORM unlinks nothing where a map says nil of an association: name its foreign key, or use Association(%q).Clear()",
				p.model.Schema.Name, name, name)
		}
	}
	return nil
}

// asks reports whether GORM would write this column or association, by Select and Omit.
func (f *form) asks(name string) bool {
	asked, named := f.selected[name]
	return named && asked || !named && !f.restricted
}

// isLost reports whether the association says something that is not written.
func (f *form) isLost(relation *schema.Relationship, place reflect.Value) bool {
	own := statement.OwnRelations(f.plan.model.Schema)
	at := slices.IndexFunc(own, func(r *schema.Relationship) bool { return r.Name == relation.Name })
	if at < 0 || !f.asks(relation.Name) || slices.Contains(f.plan.model.Roots, own[at]) || place.Kind() == reflect.Slice && place.Len() == 0 {
		return false // those of roots are refused where these move
	}
	if relation.Type == schema.BelongsTo && f.writesKey(relation, place) {
		return false
	}
	for i := range f.plan.memory.Count {
		if !isHeld(own[at], f.plan.memory.Row(i), relation, place) {
			return true
		}
	}
	return f.plan.memory.Count == 0
}

// writesKey reports whether the foreign key in the values is that of the association, and is written.
func (f *form) writesKey(relation *schema.Relationship, place reflect.Value) bool {
	if !statement.HasKeyOfOther(relation, place) || !statement.Refers(relation, f.values, place) {
		return false
	}
	return !slices.ContainsFunc(relation.References, func(ref *schema.Reference) bool { return !f.asks(ref.ForeignKey.DBName) })
}

// isHeld reports whether a struct holds the association of the values, or belongs to it already.
func isHeld(own *schema.Relationship, row reflect.Value, relation *schema.Relationship, place reflect.Value) bool {
	if own.Type == schema.BelongsTo && relation.Type == schema.BelongsTo {
		return statement.HasKeyOfOther(relation, place) && statement.LinkOf(own, row) == statement.KeyOfOther(relation, place)
	}
	held := statement.Place(own.Field, row)
	return held.IsValid() && reflect.DeepEqual(held.Interface(), place.Interface())
}
