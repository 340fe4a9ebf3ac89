package model

import (
	"slices"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// Referred are the fields of the other model by which a belongs-to or a many-to-many refers to rows of that model.
func Referred(relation *schema.Relationship) []*schema.Field {
	var fields []*schema.Field
	for _, ref := range relation.References {
		if !ref.OwnPrimaryKey && ref.PrimaryValue == "" {
			fields = append(fields, ref.PrimaryKey)
		}
	}
	return fields
}

// IsByKey reports whether a relation refers to rows by their key only.
func IsByKey(relation *schema.Relationship) bool {
	return !slices.ContainsFunc(Referred(relation), func(field *schema.Field) bool { return !field.PrimaryKey })
}

func refersByOthers(s *schema.Schema, seen map[*schema.Schema]bool) bool {
	if s == nil || seen[s] {
		return false
	}
	seen[s] = true
	statement.Await(s)
	return slices.ContainsFunc(statement.OwnRelations(s), func(relation *schema.Relationship) bool {
		refers := relation.Type == schema.BelongsTo || relation.Type == schema.Many2Many
		return refers && !IsByKey(relation) || refersByOthers(relation.FieldSchema, seen)
	})
}
