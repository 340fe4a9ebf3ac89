package reading

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
	"gorm.io/gorm/utils"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// End runs after a query and its hooks.
func End(db *gorm.DB) {
	KeepPreloaded(db)
	refuseMixed(db)
	journal.Follow(db)
}

// refuseMixed fails a query if its Preload may have given a struct the children of another one: GORM finds the struct of a row by a key whose parts
// it joins with "_".
func refuseMixed(db *gorm.DB) {
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

// mixes reports whether GORM has mistaken two different keys for one: keys of the structs that were read, or of those that a join table links to
// them.
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
	// Of keys that it mistakes for one, GORM has read only the first: the links show the others.
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

// isPreloaded reports whether a name in Preload names the relation, or a relation within it.
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

// mixed finds different keys that GORM takes for the same.
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
		key[i], _ = statement.Sent(key[i])
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
