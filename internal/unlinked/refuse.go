package unlinked

import (
	"fmt"
	"reflect"

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
	relation *schema.Relationship
	owner    install.Owner
	row      reflect.Value
	field    reflect.Value
	undone   bool // the row still has it
}

// placesIn are those in a struct.
func placesIn(db *gorm.DB, s *schema.Schema, row reflect.Value) (all []place) {
	known := &install.Of(db).Unlinked
	for _, relations := range [...][]*schema.Relationship{s.Relationships.BelongsTo, s.Relationships.HasOne} {
		for _, relation := range relations {
			field := statement.Place(relation.Field, row)
			if !field.IsValid() {
				continue
			}
			owner := install.Owner{Of: s.ModelType, Relation: relation.Name, Key: ownerKey(db, relation, row)}
			if loss := known.Find(owner); loss != nil {
				all = append(all, place{relation, owner, row, field, loss.Undone()})
			}
		}
	}
	return all
}

// ownerKey is the key by which GORM finds the row of a struct to take something from it.
func ownerKey(db *gorm.DB, relation *schema.Relationship, row reflect.Value) string {
	fields := relation.Schema.PrimaryFields
	if relation.Type == schema.HasOne {
		fields = nil
		for _, ref := range ownersColumns(relation) {
			fields = append(fields, ref.PrimaryKey)
		}
	}
	key := make([]any, len(fields))
	for i, field := range fields {
		key[i], _ = field.ValueOf(db.Statement.Context, row)
	}
	return statement.KeyName(key)
}

// isEmptied reports whether the struct that the owner points to is empty.
func (p *place) isEmptied(db *gorm.DB) bool {
	if p.field.Kind() != reflect.Pointer || p.field.IsNil() {
		return false
	}
	held := p.field.Elem()
	version := model.OfSchema(db, p.relation.FieldSchema).Column
	if version == nil || version.Loaded(version.Read(held)) {
		return held.IsZero()
	}
	copied := reflect.New(held.Type()).Elem() // a rollback may have made it unread
	copied.Set(held)
	if at := statement.Place(version.Field, copied); at.IsValid() {
		at.SetZero()
	}
	return copied.IsZero()
}

// hasNoKey reports whether the foreign key of the owner is empty.
func (p *place) hasNoKey() bool {
	for _, ref := range ownersColumns(p.relation) {
		if at := statement.Place(ref.ForeignKey, p.row); at.IsValid() && !at.IsZero() {
			return false
		}
	}
	return true
}

const refusing = "gormlock:unlinked"

// refused is the places of a statement that is refused.
type refused []place

// Build makes it fit into a statement's clauses, where it is found again. It writes nothing.
func (refused) Build(clause.Builder) {}

// RefuseEmptied refuses a write of structs that have lost something which their rows still have, and one that would store an empty struct
// which GORM has left in them.
func RefuseEmptied(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun || stmt.Schema == nil || !stmt.ReflectValue.IsValid() || install.Of(db) == nil || !install.Of(db).Unlinked.Any() {
		return
	}
	saves := statement.Saving(stmt)
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if db.Error != nil || row.Type() != stmt.Schema.ModelType || !row.CanAddr() {
			return
		}
		for _, p := range placesIn(db, stmt.Schema, row) {
			if p.refuse(db, saves(p.relation)); db.Error != nil {
				stmt.Clauses[refusing] = clause.Clause{Expression: refused{p}}
				return
			}
		}
	})
}

func (p *place) refuse(db *gorm.DB, saved bool) {
	name, emptied := p.relation.Schema.Name+"."+p.relation.Name, p.isEmptied(db)
	switch {
	case p.relation.Type == schema.HasOne && emptied && saved:
		fault.Add(db, fmt.Errorf("gormlock: nothing was executed: %s points to a struct that Association(%q) has emptied, which would be stored as a new row: "+
			"it is nil now, so save again, or assign what is to be stored", name, p.relation.Name))
	case p.relation.Type != schema.BelongsTo || !p.hasNoKey():
	case p.undone && (emptied || p.field.Kind() == reflect.Struct && p.field.IsZero()):
		fault.Add(db, fmt.Errorf("%w: %s and its foreign key were emptied by Association(%q).Delete, which was rolled back: read %s again",
			fault.ErrVersionMissing, name, p.relation.Name, p.relation.Schema.Name))
	case emptied && !p.undone:
		p.empty(db) // the row has none either
	}
}

// empty takes the empty struct out of its owner.
func (p *place) empty(db *gorm.DB) {
	if p.field.Kind() == reflect.Pointer {
		p.field.SetZero()
	}
	install.Of(db).Unlinked.Forget(p.owner)
}

// AfterRead takes the empty struct out of what was read.
func AfterRead(db *gorm.DB) {
	if db.Error != nil || db.DryRun || db.Statement.Schema == nil || install.Of(db) == nil || !install.Of(db).Unlinked.Any() {
		return
	}
	row := reflect.ValueOf(db.Statement.Dest)
	for row.Kind() == reflect.Pointer {
		row = row.Elem()
	}
	if row.Kind() != reflect.Struct || row.Type() != db.Statement.Schema.ModelType || !row.CanSet() {
		return
	}
	for _, p := range placesIn(db, db.Statement.Schema, row) {
		if p.isEmptied(db) {
			p.empty(db)
		}
	}
}

// AfterEnd notes, when a statement has ended, what GORM is about to empty. What was refused is empty from now on, and counts as not read if its
// row is not as it says.
func AfterEnd(db *gorm.DB) {
	stmt := db.Statement
	if stmt.Schema == nil || install.Of(db) == nil {
		return
	}
	if all, is := stmt.Clauses[refusing].Expression.(refused); is {
		delete(stmt.Clauses, refusing)
		for i := range all {
			p := &all[i]
			if m := model.OfSchema(db, p.relation.Schema); p.relation.Type == schema.BelongsTo && m.Column != nil {
				m.Column.Write(p.row, m.Column.Unread())
			}
			p.empty(db)
		}
		return
	}
	note(db)
}
