package guard

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
	"gorm.io/gorm/utils"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// GORM saves of an association the first of the structs that have one key, and leaves out the others. It takes two keys for one
// if their parts, joined by "_", read the same.

// RefuseTwinOwners refuses to save what structs belong to, if GORM would leave out some of it.
func RefuseTwinOwners(db *gorm.DB) { refuseTwins(db, schema.BelongsTo) }

// refuseTwinChildren does so for what belongs to structs. Their keys are known by now, which may be parts of the children's keys.
func refuseTwinChildren(db *gorm.DB) { refuseTwins(db, schema.HasMany, schema.Many2Many) }

func refuseTwins(db *gorm.DB, of ...schema.RelationshipType) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil || db.DryRun || slices.Contains(stmt.BuildClauses, "DELETE") {
		return
	}
	m := model.Of(db)
	if m == nil {
		return
	}
	for _, relation := range m.Shared {
		if !slices.Contains(of, relation.Type) || relation.Type == schema.BelongsTo && stmt.ReflectValue.Kind() == reflect.Struct {
			continue
		}
		t := &twins{stmt: stmt, relation: relation, version: model.OfSchema(db, relation.FieldSchema).Column}
		if t.version == nil || !t.isSaved() {
			continue
		}
		if t.find(); t.err != nil {
			fault.Add(db, t.err)
			return
		}
	}
}

// twins are the structs of an association by their keys, as GORM tells them apart.
type twins struct {
	stmt     *gorm.Statement
	relation *schema.Relationship
	version  *column.Version
	first    map[string]associated
	err      error
}

// associated is a struct of an association.
type associated struct {
	row reflect.Value
	key []any
	of  string // the key of its parent that it gets, as a string
}

func (t *twins) isSaved() bool {
	if len(t.stmt.Selects)+len(t.stmt.Omits) == 0 {
		return true
	}
	selected, restricted := t.stmt.SelectAndOmitColumns(false, false)
	is, known := selected[t.relation.Name]
	return is || !known && !restricted
}

// find looks for structs that would be left out.
func (t *twins) find() {
	statement.EachStruct(t.stmt.ReflectValue, func(owner reflect.Value) {
		if owner.Type() != t.stmt.Schema.ModelType {
			return
		}
		if place := statement.Place(t.relation.Field, owner); place.IsValid() {
			statement.EachStruct(place, func(row reflect.Value) { t.add(owner, row) })
		}
	})
}

func (t *twins) add(owner, row reflect.Value) {
	one := associated{row: row}
	given := map[*schema.Field]any{}
	if t.relation.Type == schema.HasMany {
		var parent []any
		for _, ref := range t.relation.References {
			var value any = ref.PrimaryValue
			if ref.OwnPrimaryKey {
				value, _ = ref.PrimaryKey.ValueOf(t.stmt.Context, owner)
			}
			given[ref.ForeignKey], parent = value, append(parent, value)
		}
		one.of = statement.KeyName(parent)
	}
	for _, field := range t.relation.FieldSchema.PrimaryFields {
		value, zero := field.ValueOf(t.stmt.Context, row)
		if gets, is := given[field]; is {
			value, zero = gets, reflect.ValueOf(gets).IsZero()
		}
		if zero {
			return // GORM saves it in any case
		}
		one.key = append(one.key, value)
	}
	name := utils.ToStringKey(one.key...)
	if first, is := t.first[name]; is {
		t.compare(first, one)
		return
	}
	if t.first == nil {
		t.first = map[string]associated{}
	}
	t.first[name] = one
}

// compare decides whether a struct can be left out, because the first with this key stands for it.
func (t *twins) compare(first, second associated) {
	const cure = "save each by itself"
	switch where := t.stmt.Schema.Name + "." + t.relation.Name; {
	case t.err != nil:
	case statement.KeyName(first.key) != statement.KeyName(second.key):
		t.err = fmt.Errorf("gormlock: %s: %s and %s: GORM joins the parts of a key by \"_\", takes these two for one row, and would leave one out: %s",
			where, t.nameOf(first.key), t.nameOf(second.key), cure)
	case first.of != second.of:
		t.err = fmt.Errorf("gormlock: %s: %s is in two structs, and a row has one parent: leave it in one of them", where, t.nameOf(first.key))
	case first.row.CanAddr() && second.row.CanAddr() && first.row.Addr().Pointer() == second.row.Addr().Pointer():
	case !t.stmt.FullSaveAssociations && (t.wasRead(first.row) || t.wasRead(second.row)):
		// they have a row, of which GORM writes the foreign key at most
	case !t.isLike(first.row, second.row):
		t.err = fmt.Errorf("gormlock: %s: two structs of %s that differ: GORM would save one and leave out the other: point to one struct from both places, or %s",
			where, t.nameOf(first.key), cure)
	}
}

func (t *twins) wasRead(row reflect.Value) bool { return !t.version.Unset(t.version.Read(row)) }

func (t *twins) nameOf(key []any) string {
	s, values := t.relation.FieldSchema, map[string]any{}
	for i, field := range s.PrimaryFields {
		values[field.DBName] = key[i]
	}
	return fault.Row(s.Table, s.PrimaryFieldDBNames, values)
}

// isLike reports whether two structs would be saved as one and the same: their columns, and what they hold, if that is saved too.
func (t *twins) isLike(a, b reflect.Value) bool {
	s := t.relation.FieldSchema
	for _, field := range s.Fields {
		if _, holds := s.Relationships.Relations[field.Name]; field.DBName == "" && !holds || t.relation.Type == schema.HasMany && t.isLink(field) {
			continue
		}
		x, _ := field.ValueOf(t.stmt.Context, a)
		y, _ := field.ValueOf(t.stmt.Context, b)
		if s, is := x.(time.Time); is {
			if u, both := y.(time.Time); both && s.Equal(u) {
				continue
			}
		}
		if !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}

func (t *twins) isLink(field *schema.Field) bool {
	return slices.ContainsFunc(t.relation.References, func(ref *schema.Reference) bool { return ref.ForeignKey == field })
}

// RefuseMixed fails a query of which Preload may have given a struct what belongs to another one: GORM finds the struct of a row by
// a key whose parts it joins by "_".
func RefuseMixed(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || len(stmt.Preloads) == 0 || stmt.Schema == nil || stmt.ReflectValue.Kind() == reflect.Struct {
		return
	}
	for _, relation := range stmt.Schema.Relationships.Relations {
		if len(relation.References) < 2 || !isPreloaded(stmt, relation) || !model.IsVersioned(stmt.Schema) && !model.IsVersioned(relation.FieldSchema) {
			continue
		}
		var own, others []*schema.Field
		for _, ref := range relation.References {
			switch {
			case ref.PrimaryValue != "":
			case ref.OwnPrimaryKey:
				own = append(own, ref.PrimaryKey)
			case relation.Type == schema.Many2Many:
				others = append(others, ref.PrimaryKey)
			default:
				own = append(own, ref.ForeignKey)
			}
		}
		mine, theirs := &mixed{fields: own}, &mixed{fields: others}
		statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
			if row.Type() != stmt.Schema.ModelType {
				return
			}
			mine.add(stmt.Context, row)
			if len(others) > 1 {
				statement.EachStruct(statement.Place(relation.Field, row), func(row reflect.Value) { theirs.add(stmt.Context, row) })
			}
		})
		if mine.is || theirs.is {
			fault.Add(db, fmt.Errorf("gormlock: %s: Preload(%q): GORM joins the parts of keys by \"_\", takes two of these for one, and gives a struct what belongs to another: read the structs one by one",
				stmt.Schema.Name, relation.Name))
			return
		}
	}
}

func isPreloaded(stmt *gorm.Statement, relation *schema.Relationship) bool {
	_, by := stmt.Preloads[relation.Name]
	_, all := stmt.Preloads[clause.Associations]
	return by || all
}

// mixed finds keys that differ and look the same to GORM.
type mixed struct {
	fields []*schema.Field
	first  map[string]string
	is     bool
}

func (m *mixed) add(ctx context.Context, row reflect.Value) {
	if len(m.fields) < 2 {
		return
	}
	key := make([]any, len(m.fields))
	for i, field := range m.fields {
		key[i], _ = field.ValueOf(ctx, row)
	}
	short, whole := utils.ToStringKey(key...), statement.KeyName(key)
	if m.first == nil {
		m.first = map[string]string{}
	}
	if before, is := m.first[short]; is && before != whole {
		m.is = true
	}
	m.first[short] = whole
}
