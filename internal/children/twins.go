package children

import (
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
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/whereabouts"
)

// If several structs of an association have the same key, GORM saves the first and leaves out the others. It takes two keys for the same if
// their parts, joined by "_", give the same text.

// RefuseTwins refuses a save if GORM would leave out structs of an association, before anything is stored.
func RefuseTwins(db *gorm.DB) {
	refuseTwins(db, func(*schema.Relationship) bool { return true })
}

// RefuseTwinsOfWritten does so after the owners are stored: the keys of new owners, which may be parts of their children's keys, are known
// only then.
func RefuseTwinsOfWritten(db *gorm.DB) {
	if db.Error != nil {
		return
	}
	refuseTwins(db, func(r *schema.Relationship) bool {
		return slices.ContainsFunc(r.References, func(ref *schema.Reference) bool { return ref.OwnPrimaryKey && ref.ForeignKey.PrimaryKey }) && r.Type == schema.HasMany
	})
	if db.Error != nil {
		journal.Doom(db, db.Error)
	}
}

func refuseTwins(db *gorm.DB, of func(*schema.Relationship) bool) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil || db.DryRun || slices.Contains(stmt.BuildClauses, "DELETE") {
		return
	}
	m := model.Of(db)
	if m == nil {
		return
	}
	for _, relation := range m.Shared {
		if !of(relation) || relation.Type == schema.BelongsTo && stmt.ReflectValue.Kind() == reflect.Struct {
			continue
		}
		child := model.OfSchema(db, relation.FieldSchema)
		if child.Column == nil && child.Fence == nil {
			continue
		}
		t := &twins{stmt: stmt, relation: relation, version: child.Column}
		if t.find(); t.err != nil && t.isSaved() {
			fault.Add(db, t.err)
			return
		}
	}
}

// twins finds structs of an association with the same key, in the way GORM compares keys.
type twins struct {
	stmt     *gorm.Statement
	relation *schema.Relationship
	version  *column.Version // nil: their model only has a fence
	first    map[string]associated
	parents  map[uintptr]string // the parents' keys of new structs, by the addresses of these
	err      error
}

// associated is a struct of an association.
type associated struct {
	row reflect.Value
	key []any
	of  string // the parent's key, which it gets as its foreign key, as a string
}

// isSaved reports whether GORM saves the structs of the association. If only the structs of a many2many are omitted (Omit("Tags.*")), GORM
// stores all links and no struct.
func (t *twins) isSaved() bool {
	chosen := statement.ChosenFor(t.stmt, slices.Contains(t.stmt.BuildClauses, "VALUES"))
	if t.relation.Type == schema.Many2Many && chosen.LeavesOut(t.relation.Name+".*") {
		return false
	}
	return chosen.Has(t.relation.Name)
}

// find looks for structs that GORM would leave out.
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
			if !ref.OwnPrimaryKey {
				given[ref.ForeignKey], parent = ref.PrimaryValue, append(parent, ref.PrimaryValue)
				continue
			}
			value, zero := ref.PrimaryKey.ValueOf(t.stmt.Context, owner)
			if given[ref.ForeignKey] = value; zero {
				given[ref.ForeignKey] = nil
				if owner.CanAddr() { // it gets a key when it is stored
					value = owner.Addr().Pointer()
				}
			}
			parent = append(parent, value)
		}
		one.of = statement.KeyName(parent)
	}
	for _, field := range t.relation.FieldSchema.PrimaryFields {
		value, zero := field.ValueOf(t.stmt.Context, row)
		if gets, is := given[field]; is {
			value, zero = gets, gets == nil
		}
		if zero {
			t.addNew(one)
			return // GORM saves new structs in any case
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

// addNew notes a struct that gets its key when it is stored. It may be in the association twice: see StoreOnce.
func (t *twins) addNew(one associated) {
	if t.relation.Type != schema.HasMany || whereabouts.IsHeldByValue(t.relation) || !one.row.CanAddr() {
		return
	}
	at := one.row.Addr().Pointer()
	if parent, is := t.parents[at]; is && parent != one.of && t.err == nil {
		t.err = fmt.Errorf("gormlock: %s.%s: one new struct is in two structs, and a row has one parent: leave it in one of them", t.stmt.Schema.Name, t.relation.Name)
	}
	if t.parents == nil {
		t.parents = map[uintptr]string{}
	}
	t.parents[at] = one.of
}

// compare decides whether the second struct may be left out, because the first one stands for it.
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
	case !t.isLike(first.row, second.row) && (t.stmt.FullSaveAssociations || !t.haveRow(first, second)):
		t.err = fmt.Errorf("gormlock: %s: two structs of %s that differ: GORM would save one and leave out the other: point to one struct from both places, or %s",
			where, t.nameOf(first.key), cure)
	}
}

// haveRow reports whether the row of two structs exists: then GORM writes at most its foreign key. If one of them was read, it exists. If the
// versions do not show that, the server is asked.
func (t *twins) haveRow(first, second associated) bool {
	switch {
	case !t.isUnset(first.row) || !t.isUnset(second.row):
		return true
	case t.version != nil && !t.version.ZeroIsLoaded() && !t.version.IsSystem():
		return false
	}
	s, n := t.relation.FieldSchema, int64(0)
	ask := t.stmt.DB.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Unscoped().Model(reflect.New(s.ModelType).Interface())
	for i, field := range s.PrimaryFields {
		ask = ask.Where(clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: field.DBName}, Value: first.key[i]})
	}
	t.err = ask.Count(&n).Error
	return t.err != nil || n > 0
}

// isUnset reports whether a struct has no version of a row.
func (t *twins) isUnset(row reflect.Value) bool {
	return t.version == nil || t.version.Unset(t.version.Read(row))
}

func (t *twins) nameOf(key []any) string {
	s, values := t.relation.FieldSchema, map[string]any{}
	for i, field := range s.PrimaryFields {
		values[field.DBName] = key[i]
	}
	return fault.Row(s.Table, s.PrimaryFieldDBNames, values)
}

// isLike reports whether saving either struct gives the same: their columns and associations are equal.
func (t *twins) isLike(a, b reflect.Value) bool {
	s := t.relation.FieldSchema
	for _, field := range s.Fields {
		if _, holds := s.Relationships.Relations[field.Name]; field.DBName == "" && !holds || t.relation.Type == schema.HasMany && t.isLink(field) {
			continue
		}
		if t.version != nil && field == t.version.Field && t.isUnset(a) && t.isUnset(b) {
			continue // a rollback may have left one of them unread
		}
		x, y := statement.Place(field, a), statement.Place(field, b)
		if x.IsValid() != y.IsValid() || x.IsValid() && !statement.SameValue(x.Interface(), y.Interface(), time.Nanosecond) {
			return false
		}
	}
	return true
}

func (t *twins) isLink(field *schema.Field) bool {
	return slices.ContainsFunc(t.relation.References, func(ref *schema.Reference) bool { return ref.ForeignKey == field })
}
