package statement

import (
	"context"
	"reflect"
	"slices"

	"gorm.io/gorm/schema"
)

// Links is what ties a struct to its associations, as it was at one moment: foreign keys, and other columns that are
// referred to. A save takes a foreign key from the association that the struct holds. So an association must not
// outlive the key that it was read by.
type Links struct {
	relations []*schema.Relationship
	keys      []string
}

// LinksOf are the links of a struct by these relations.
func LinksOf(relations []*schema.Relationship, row reflect.Value) Links {
	l := Links{relations: relations}
	for _, relation := range relations {
		l.keys = append(l.keys, linkOf(relation, row))
	}
	return l
}

// linkOf is the own side of a relation in a struct.
func linkOf(relation *schema.Relationship, row reflect.Value) string {
	var key []any
	for _, ref := range relation.References {
		switch {
		case ref.PrimaryValue != "":
		case ref.OwnPrimaryKey:
			key = append(key, valueOf(ref.PrimaryKey, row))
		case relation.Type == schema.BelongsTo:
			key = append(key, valueOf(ref.ForeignKey, row))
		}
	}
	return KeyName(key)
}

// valueOf is the value of a field, nil where it is NULL.
func valueOf(field *schema.Field, row reflect.Value) any {
	if place := Place(field, row); !place.IsValid() || place.Kind() == reflect.Pointer && place.IsNil() {
		return nil
	}
	value, _ := field.ValueOf(context.Background(), row)
	return value
}

// Empty empties the associations of a struct whose links have changed, unless they are those of the new links.
func (l Links) Empty(row reflect.Value, loaded ...string) {
	for i, relation := range l.relations {
		place := Place(relation.Field, row)
		if !place.IsValid() || place.IsZero() || slices.Contains(loaded, relation.Name) {
			continue
		}
		link := linkOf(relation, row)
		if link != l.keys[i] && (relation.Type != schema.BelongsTo || link != keyOfOther(relation, reflect.Indirect(place))) {
			place.SetZero()
		}
	}
}

// Association is one that a struct held at some moment.
type Association struct{ place, value reflect.Value }

// AssociationsOf are those that a struct holds.
func AssociationsOf(s *schema.Schema, row reflect.Value) []Association {
	var all []Association
	for _, relation := range OwnRelations(s) {
		if place := Place(relation.Field, row); place.IsValid() && !place.IsZero() {
			value := reflect.New(place.Type()).Elem()
			value.Set(place)
			all = append(all, Association{place, value})
		}
	}
	return all
}

// PutBack gives the struct the association again, if it holds none by now.
func (a Association) PutBack() {
	if a.place.IsZero() {
		a.place.Set(a.value)
	}
}

// keyOfOther is the key by which the struct that is belonged to is referred to.
func keyOfOther(relation *schema.Relationship, other reflect.Value) string {
	var key []any
	for _, ref := range relation.References {
		if !ref.OwnPrimaryKey && ref.PrimaryValue == "" {
			key = append(key, valueOf(ref.PrimaryKey, other))
		}
	}
	return KeyName(key)
}
