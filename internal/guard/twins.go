package guard

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
	"gorm.io/gorm/utils"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/whereabouts"
)

// GORM saves of an association the first of the structs that have one key, and leaves out the others. It takes two keys for one
// if their parts, joined by "_", read the same.

// RefuseTwins refuses to save associations of which GORM would leave out a part, before anything is stored.
func RefuseTwins(db *gorm.DB) {
	refuseTwins(db, func(*schema.Relationship) bool { return true })
}

// refuseTwinsOfWritten does so when the keys of new owners are known, which may be parts of their children's keys.
func refuseTwinsOfWritten(db *gorm.DB) {
	if db.Error != nil {
		return
	}
	refuseTwins(db, func(r *schema.Relationship) bool {
		return slices.ContainsFunc(r.References, func(ref *schema.Reference) bool { return ref.OwnPrimaryKey && ref.ForeignKey.PrimaryKey }) && r.Type == schema.HasMany
	})
	if db.Error != nil {
		Doom(db, db.Error)
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

// twins are the structs of an association by their keys, as GORM tells them apart.
type twins struct {
	stmt     *gorm.Statement
	relation *schema.Relationship
	version  *column.Version // nil: their model has a fence alone
	first    map[string]associated
	parents  map[uintptr]string // of new structs, by their addresses
	err      error
}

// associated is a struct of an association.
type associated struct {
	row reflect.Value
	key []any
	of  string // the key of its parent that it gets, as a string
}

// isSaved reports whether GORM saves the structs of the association. It stores the links of all structs if those themselves are
// omitted.
func (t *twins) isSaved() bool {
	creates := slices.Contains(t.stmt.BuildClauses, "VALUES")
	selected, restricted := t.stmt.SelectAndOmitColumns(creates, !creates)
	if is, known := selected[t.relation.Name+".*"]; known && !is && t.relation.Type == schema.Many2Many {
		return false
	}
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

// addNew notes a struct that gets its key when it is stored. It may be in the association twice: see storeOnce.
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
	case !t.isLike(first.row, second.row) && (t.stmt.FullSaveAssociations || !t.haveRow(first, second)):
		t.err = fmt.Errorf("gormlock: %s: two structs of %s that differ: GORM would save one and leave out the other: point to one struct from both places, or %s",
			where, t.nameOf(first.key), cure)
	}
}

// haveRow reports whether two structs have a row: then GORM writes its foreign key at most. One that was read has one. If the version
// does not show that, the server is asked.
func (t *twins) haveRow(first, second associated) bool {
	unset := func(row reflect.Value) bool { return t.version == nil || t.version.Unset(t.version.Read(row)) }
	switch {
	case !unset(first.row) || !unset(second.row):
		return true
	case t.version != nil && !t.version.ZeroIsLoaded() && !t.version.IsSystem():
		return false
	}
	s, n := t.relation.FieldSchema, int64(0)
	ask := t.stmt.DB.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Unscoped().Model(reflect.New(s.ModelType).Interface())
	t.err = ask.Where(KeyIn(s, [][]any{first.key})).Count(&n).Error
	return t.err != nil || n > 0
}

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
		x, y := statement.Place(field, a), statement.Place(field, b)
		if x.IsValid() != y.IsValid() || x.IsValid() && !sameValue(x.Interface(), y.Interface(), time.Nanosecond) {
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
	if db.Error != nil || len(stmt.Preloads) == 0 || stmt.Schema == nil || stmt.DryRun {
		return
	}
	for _, relation := range statement.OwnRelations(stmt.Schema) {
		if len(relation.References) < 2 || !isPreloaded(stmt, relation) || !model.IsVersioned(stmt.Schema) && !model.IsVersioned(relation.FieldSchema) {
			continue
		}
		is, err := mixes(stmt, relation)
		switch {
		case err != nil:
			fault.Add(db, err)
		case is:
			fault.Add(db, fmt.Errorf("gormlock: %s: Preload(%q): GORM joins the parts of keys by \"_\", takes two of these for one, and gives a struct what belongs to another: read the structs one by one",
				stmt.Schema.Name, relation.Name))
			return
		}
	}
}

// mixes reports whether GORM has taken two keys for one: of the structs that were read, or of those that a join table links to them.
func mixes(stmt *gorm.Statement, relation *schema.Relationship) (bool, error) {
	mine, theirs := &mixed{}, &mixed{}
	var keys, links []*schema.Field
	for _, ref := range relation.References {
		switch {
		case ref.PrimaryValue != "":
		case ref.OwnPrimaryKey:
			mine.fields, keys = append(mine.fields, ref.PrimaryKey), append(keys, ref.ForeignKey)
		case relation.JoinTable != nil:
			theirs.fields, links = append(theirs.fields, ref.PrimaryKey), append(links, ref.ForeignKey)
		default:
			mine.fields = append(mine.fields, ref.ForeignKey)
		}
	}
	ask, all := false, [][]any(nil)
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if row.Type() != stmt.Schema.ModelType {
			return
		}
		all = append(all, mine.add(stmt.Context, row))
		if place := statement.Place(relation.Field, row); len(links) > 1 && place.IsValid() {
			statement.EachStruct(place, func(row reflect.Value) {
				ask = ask || slices.ContainsFunc(theirs.add(stmt.Context, row), func(part any) bool { return strings.Contains(utils.ToStringKey(part), "_") })
			})
		}
	})
	if mine.is || !ask {
		return mine.is, nil
	}
	// GORM has read only the first of what it takes for one: the links show the others.
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.DBName
	}
	column, values := schema.ToQueryValues(clause.CurrentTable, names, all)
	rows := relation.JoinTable.MakeSlice()
	err := stmt.DB.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Where(clause.IN{Column: column, Values: values}).Find(rows.Interface()).Error
	others := &mixed{fields: links}
	statement.EachStruct(rows, func(row reflect.Value) { others.add(stmt.Context, row) })
	return others.is, err
}

// isPreloaded reports whether a name in Preload is that of the relation, or leads on from it.
func isPreloaded(stmt *gorm.Statement, relation *schema.Relationship) bool {
	path := strings.Join(relation.Field.EmbeddedBindNames, ".")
	for name := range stmt.Preloads {
		for _, own := range []string{relation.Name, path, clause.Associations} {
			if name == own || strings.HasPrefix(name, own+".") {
				return true
			}
		}
	}
	return false
}

// mixed finds keys that differ and look the same to GORM.
type mixed struct {
	fields []*schema.Field
	first  map[string]string
	is     bool
}

// add adds the key of a struct, and returns it.
func (m *mixed) add(ctx context.Context, row reflect.Value) []any {
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
	return key
}
