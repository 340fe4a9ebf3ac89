package model

import (
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// NeedsJournal reports whether a statement on the model, including its associations and their hooks, can change memory
// that a rollback must restore. It can if there is a gormlock tag, or a hook, because a hook may do anything.
func NeedsJournal(db *gorm.DB, model *schema.Schema) bool {
	if model == nil {
		return false
	}
	return OfSchema(db, model).NeedsJournal(db)
}

// NeedsJournal remembers the answer for the model.
func (m *Model) NeedsJournal(db *gorm.DB) bool {
	needs := m.journaled.Load()
	if needs == nil {
		asked := ReachesJournal(db, m.Schema, map[*schema.Schema]bool{})
		needs = &asked
		m.journaled.Store(needs)
	}
	return *needs
}

// ReachesJournal computes the answer of NeedsJournal. It does not visit a model twice.
func ReachesJournal(db *gorm.DB, model *schema.Schema, seen map[*schema.Schema]bool) bool {
	if model == nil || seen[model] {
		return false
	}
	seen[model] = true
	statement.Await(model)
	if model.BeforeCreate || model.AfterCreate || model.BeforeUpdate || model.AfterUpdate ||
		model.BeforeDelete || model.AfterDelete || model.BeforeSave || model.AfterSave {
		return true
	}
	for _, field := range model.Fields {
		if field.Tag.Get("gormlock") != "" {
			return true
		}
	}
	for _, relation := range statement.OwnRelations(model) {
		if ReachesJournal(db, relation.FieldSchema, seen) || ReachesJournal(db, relation.JoinTable, seen) {
			return true
		}
	}
	return false
}
