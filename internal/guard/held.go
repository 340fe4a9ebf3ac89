package guard

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// eachHeld visits the structs that those of a statement hold by value in their associations.
func eachHeld(s *memory.Structs, visit func(*model.Model, reflect.Value)) {
	m := s.Model()
	if m == nil {
		return
	}
	for _, relation := range statement.OwnRelations(m.Schema) {
		if !isHeldByValue(relation) {
			continue
		}
		for i := range s.Count {
			row := s.Row(i)
			if !row.IsValid() || !row.CanAddr() {
				continue
			}
			if place := statement.Place(relation.Field, row); place.IsValid() {
				statement.EachStruct(place, func(held reflect.Value) { visit(m.Of(relation.FieldSchema), held) })
			}
		}
	}
}

// copies is a step with structs that GORM has copied to where they are, before a statement of Association(…).Append: a rollback looks for what
// it takes back there too.
type copies struct {
	db     *gorm.DB
	held   []copied
	places *memory.Places
}

type copied struct {
	schema *schema.Schema
	place  reflect.Value
}

// keepCopies notes the copies that the owner in an Append holds.
func keepCopies(stmt *gorm.Statement) {
	j := journal.Of(stmt)
	if j == nil || j.Written() == 0 {
		return
	}
	c := &copies{db: &gorm.DB{Config: stmt.Config}}
	eachCopied(stmt, func(relation *schema.Relationship, place reflect.Value) {
		statement.EachStruct(place, func(row reflect.Value) { c.held = append(c.held, copied{relation.FieldSchema, row}) })
	})
	j.Keep(c)
}

// Undo implements journal.Step, as does Lose. Whoever moved a version takes it back. Copies of what the transaction has read count as not read.
func (c *copies) Undo() {
	for _, one := range c.held {
		if m := model.OfSchema(c.db, one.schema); m.Column != nil && c.places.IsOfRead(m, one.place) {
			m.Column.Write(one.place, m.Column.Unread())
		}
	}
}

// Lose does the same.
func (c *copies) Lose() { c.Undo() }

// Regroup implements journal.Regrouper.
func (c *copies) Regroup(undone, all []journal.Step, lost bool) { Regroup(undone, all, lost) }

func (c *copies) seeIn(places *memory.Places) {
	c.places = places
	for _, one := range c.held {
		places.See(model.OfSchema(c.db, one.schema), one.place)
	}
}
