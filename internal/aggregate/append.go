package aggregate

import (
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/statement"
)

// appended is the error of a row that Association(…).Append creates from a map, outside of a transaction, if the row's root is the owner. GORM
// stores the row in a transaction of its own, which moves the owner, and then updates the owner at the version that it had before.
func (p *part) appended(values map[string]any) error {
	if !guard.HasOwnTransaction(p.db) || !statement.InAppend() {
		return nil
	}
	for _, root := range p.model.Roots {
		if owner := root.FieldSchema; updatesOwner(p.db, owner) && p.isOwner(owner, values) {
			return fmt.Errorf("%w: %s was not stored: Append of a map moves the version of its %s with one statement, and updates the %s as it was before with another",
				fault.ErrNoTransaction, p.model.Schema.Name, owner.Name, owner.Name)
		}
	}
	return nil
}

// updatesOwner reports whether GORM assigns something to the owner, though it selects only the association.
func updatesOwner(db *gorm.DB, owner *schema.Schema) bool {
	return db.FullSaveAssociations || !db.Statement.SkipHooks && slices.ContainsFunc(owner.Fields, func(field *schema.Field) bool {
		return field.AutoUpdateTime > 0 && field.DBName != "" && field.Updatable
	})
}

// isOwner reports whether only this model can own the row: GORM has put the owner's key into the map. A row of a join table could have any owner.
func (p *part) isOwner(owner *schema.Schema, values map[string]any) bool {
	owns, others := false, false
	statement.EachParsed(p.db, func(s *schema.Schema) bool {
		has := slices.ContainsFunc(s.Relationships.HasMany, func(r *schema.Relationship) bool { return p.isGiven(r, values) })
		has = has || slices.ContainsFunc(s.Relationships.Many2Many, func(r *schema.Relationship) bool { return r.FieldSchema.ModelType == p.model.Schema.ModelType })
		if s.ModelType == owner.ModelType {
			owns = owns || has
		} else {
			others = others || has
		}
		return !others
	})
	return owns && !others
}

// isGiven reports whether a map has the foreign keys by which the rows of a relation belong to their owner.
func (p *part) isGiven(relation *schema.Relationship, values map[string]any) bool {
	return relation.FieldSchema.ModelType == p.model.Schema.ModelType && !slices.ContainsFunc(relation.References, func(ref *schema.Reference) bool {
		value, is := statement.Named(values, ref.ForeignKey)
		return !is || value == nil
	})
}
