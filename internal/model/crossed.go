package model

import (
	"slices"

	"gorm.io/gorm/schema"
)

// crossed are the relations whose foreign key has a column in common with that of another one of them.
func crossed(relations []*schema.Relationship) (all []*schema.Relationship) {
	for _, relation := range relations {
		if slices.ContainsFunc(relations, func(other *schema.Relationship) bool { return other != relation && crosses(relation, other) }) {
			all = append(all, relation)
		}
	}
	return all
}

func crosses(a, b *schema.Relationship) bool {
	return slices.ContainsFunc(a.References, func(ref *schema.Reference) bool { return HasColumn(b, ref.ForeignKey.DBName) })
}

// HasColumn reports whether a column is a part of the foreign key of a relation.
func HasColumn(relation *schema.Relationship, column string) bool {
	return slices.ContainsFunc(relation.References, func(ref *schema.Reference) bool { return ref.ForeignKey.DBName == column })
}

// CrossedBy are the belongs-to relations of the children of a has-one or has-many relation whose foreign key has a column in common with that of
// the relation. Those that only say the same from the other side are left out.
func CrossedBy(relation *schema.Relationship) (all []*schema.Relationship) {
	for _, own := range relation.FieldSchema.Relationships.BelongsTo {
		back := own.FieldSchema.Table == relation.Schema.Table &&
			!slices.ContainsFunc(relation.References, func(ref *schema.Reference) bool {
				return ref.PrimaryValue == "" && !HasColumn(own, ref.ForeignKey.DBName)
			})
		if !back && crosses(own, relation) {
			all = append(all, own)
		}
	}
	return all
}
