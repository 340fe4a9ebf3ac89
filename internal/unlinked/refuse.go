package unlinked

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// place is where a struct has an association that it may have lost.
type place struct {
	relation   *schema.Relationship
	row, field reflect.Value
}

// heldIn are the associations that a struct has lost before although its row has kept them, and that are now an empty struct: GORM leaves that in
// place. Any other content was read or assigned since.
func heldIn(db *gorm.DB, s *schema.Schema, row reflect.Value, keyed bool) (held []place, of *schema.Relationship) {
	known := &install.Of(db).Unlinked
	for _, relation := range s.Relationships.BelongsTo {
		field := statement.Place(relation.Field, row)
		if !field.IsValid() || field.Kind() != reflect.Pointer || field.IsNil() || hasKey(relation, row) != keyed {
			continue
		}
		if known.Undone(ownerOf(db, relation, row)) && isEmpty(db, field.Elem()) {
			held, of = append(held, place{relation, row, field}), relation
		}
	}
	return held, of
}

// ownerOf identifies a struct by the key with which GORM finds its row to remove something from it.
func ownerOf(db *gorm.DB, relation *schema.Relationship, row reflect.Value) install.Owner {
	key := make([]any, len(relation.Schema.PrimaryFields))
	for i, field := range relation.Schema.PrimaryFields {
		key[i], _ = field.ValueOf(db.Statement.Context, row)
	}
	return install.Owner{Of: relation.Schema.ModelType, Relation: relation.Name, Key: statement.KeyName(key)}
}

// hasKey reports whether the foreign key has a value.
func hasKey(relation *schema.Relationship, row reflect.Value) bool {
	for _, ref := range relation.References {
		at := statement.Place(ref.ForeignKey, row)
		if at = reflect.Indirect(at); at.IsValid() && !at.IsZero() {
			return true
		}
	}
	return false
}

const refusing = "gormlock:unlinked"

// refused is the places of a statement that is refused.
type refused []place

// Build lets refused be one of a statement's clauses, where it is found again. It writes nothing.
func (refused) Build(clause.Builder) {}

// RefuseEmptied refuses a write of structs whose foreign key is empty, while their rows still have it.
func RefuseEmptied(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || stmt.Schema == nil || !stmt.ReflectValue.IsValid() || install.Of(db) == nil || !install.Of(db).Unlinked.Any() {
		return
	}
	check := func(row reflect.Value, writes func(*schema.Relationship) bool) {
		if db.Error != nil || row.Type() != stmt.Schema.ModelType {
			return
		}
		lost, of := heldIn(db, stmt.Schema, row, false)
		lost = slices.DeleteFunc(lost, func(p place) bool { return !writes(p.relation) })
		if len(lost) == 0 {
			return
		}
		if row.CanAddr() {
			stmt.Clauses[refusing] = clause.Clause{Expression: refused(lost)}
		}
		fault.Add(db, fmt.Errorf("%w: %s.%s and its foreign key were emptied by Association(%q).Delete, which was rolled back: read %s again, and leave %s nil if it is to have none",
			fault.ErrVersionMissing, of.Schema.Name, of.Name, of.Name, of.Schema.Name, of.Name))
	}
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if row.CanAddr() {
			check(row, func(*schema.Relationship) bool { return true })
		}
	})
	if slices.Contains(stmt.BuildClauses, "VALUES") {
		return
	}
	selected, _ := stmt.SelectAndOmitColumns(false, true)
	statement.EachStruct(reflect.ValueOf(stmt.Dest), func(row reflect.Value) { // an empty column is written if it is named
		check(row, func(relation *schema.Relationship) bool {
			return slices.ContainsFunc(relation.References, func(ref *schema.Reference) bool { return selected[ref.ForeignKey.DBName] })
		})
	})
}

// AfterRead removes the empty structs from what was read if their foreign key is set again.
func AfterRead(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || stmt.Schema == nil || install.Of(db) == nil || !install.Of(db).Unlinked.Any() {
		return
	}
	row := reflect.ValueOf(stmt.Dest)
	for row.Kind() == reflect.Pointer {
		row = row.Elem()
	}
	if row.Kind() != reflect.Struct || row.Type() != stmt.Schema.ModelType || !row.CanSet() {
		return
	}
	held, _ := heldIn(db, stmt.Schema, row, true)
	for _, p := range held {
		p.field.SetZero()
	}
}

// isEmpty reports whether a struct is empty, except perhaps for the version that means "not read".
func isEmpty(db *gorm.DB, held reflect.Value) bool {
	if held.Kind() != reflect.Struct {
		return held.IsZero()
	}
	stmt := &gorm.Statement{DB: db}
	if err := stmt.Parse(held.Addr().Interface()); err != nil {
		return held.IsZero()
	}
	version := model.OfSchema(db, stmt.Schema).Column
	for _, field := range stmt.Schema.Fields {
		if _, zero := field.ValueOf(db.Statement.Context, held); !zero && (version == nil || field != version.Field || version.Loaded(version.Read(held))) {
			return false
		}
	}
	return true
}

// AfterEnd notes, when a statement has ended, what GORM is about to empty. Refused structs count as not read.
func AfterEnd(db *gorm.DB) {
	stmt := db.Statement
	if stmt.Schema == nil || install.Of(db) == nil {
		return
	}
	noteCall(db)
	noteSave(db)
	all, is := stmt.Clauses[refusing].Expression.(refused)
	if !is {
		note(db)
		return
	}
	delete(stmt.Clauses, refusing)
	m := model.OfSchema(db, stmt.Schema)
	for _, p := range all {
		if p.field.SetZero(); m.Column != nil {
			m.Column.Write(p.row, m.Column.Unread())
		}
	}
}
