package statement

import (
	"context"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// Links are the columns that tie a struct to its associations, at one moment: foreign keys, and the columns that other rows
// refer to. A save takes the foreign key from the association in the struct. So when the foreign key changes, the old
// association must go.
type Links struct {
	relations []*schema.Relationship
	keys      []string
}

// reloads is a note among the clauses of a query.
const reloads = "gormlock:reloads"

// Reload notes that the caller has emptied the columns of a struct, and that the query reads into it. The caller keeps the links itself.
func Reload(stmt *gorm.Statement) { stmt.Clauses[reloads] = clause.Clause{} }

// Reloads reports whether the query has the note of Reload.
func Reloads(stmt *gorm.Statement) bool {
	_, is := stmt.Clauses[reloads]
	return is
}

// LinksOf are the links of a struct by these relations.
func LinksOf(relations []*schema.Relationship, row reflect.Value) Links {
	l := Links{relations: relations}
	for _, relation := range relations {
		l.keys = append(l.keys, LinkOf(relation, row))
	}
	return l
}

// LinkOf is the struct's own side of a relation: its foreign key, or the columns that the other side refers to.
func LinkOf(relation *schema.Relationship, row reflect.Value) string {
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

// valueOf is the value of a field, nil for NULL.
func valueOf(field *schema.Field, row reflect.Value) any {
	if place := Place(field, row); !place.IsValid() || place.Kind() == reflect.Pointer && place.IsNil() {
		return nil
	}
	value, _ := field.ValueOf(context.Background(), row)
	return value
}

// Empty empties associations of a struct if their links have changed and they do not fit the new links. Associations in loaded were
// just read with the struct. They stay, unless they have the key of another row.
func (l Links) Empty(row reflect.Value, loaded ...string) {
	for i, relation := range l.relations {
		place := Place(relation.Field, row)
		if !place.IsValid() || place.IsZero() {
			continue
		}
		isLoaded := slices.Contains(loaded, relation.Name)
		if isLoaded && (relation.Type != schema.BelongsTo || !HasKeyOfOther(relation, place)) {
			continue
		}
		link := LinkOf(relation, row)
		if link != l.keys[i] && (relation.Type != schema.BelongsTo || link != KeyOfOther(relation, place)) {
			place.SetZero()
		}
	}
}

// HoldsAssociation reports whether a struct holds an association, which GORM would save with it.
func HoldsAssociation(s *schema.Schema, row reflect.Value) bool {
	r := &s.Relationships
	for _, relations := range [...][]*schema.Relationship{r.BelongsTo, r.HasOne, r.HasMany, r.Many2Many} {
		for _, relation := range relations {
			if place := Place(relation.Field, row); place.IsValid() && !place.IsZero() {
				return true
			}
		}
	}
	return false
}

// Association is an association that a struct held at some moment.
type Association struct {
	relation          *schema.Relationship
	row, place, value reflect.Value
	link              string
}

// AssociationsOf are the associations that a struct holds.
func AssociationsOf(s *schema.Schema, row reflect.Value) []Association {
	var all []Association
	for _, relation := range OwnRelations(s) {
		if place := Place(relation.Field, row); place.IsValid() && !place.IsZero() {
			all = append(all, HeldBy(row, relation, place).By(LinkOf(relation, row)))
		}
	}
	return all
}

// HeldBy is the association that a struct holds in a field.
func HeldBy(row reflect.Value, relation *schema.Relationship, place reflect.Value) Association {
	value := reflect.New(place.Type()).Elem()
	value.Set(place)
	return Association{relation: relation, row: row, place: place, value: value}
}

// Key is the key of the associated row, by which the struct refers to it.
func (a Association) Key() string { return KeyOfOther(a.relation, a.value) }

// By is the association with this link of the struct that held it.
func (a Association) By(link string) Association {
	a.link = link
	return a
}

// PutBack restores the association in the struct, if the struct holds none now and has the same link. The link may differ because the
// caller has moved another struct to this place.
func (a Association) PutBack() {
	if a.place.IsZero() && LinkOf(a.relation, a.row) == a.link {
		a.place.Set(a.value)
	}
}

// KeyOfOther is the key of the struct in a belongs-to field, by which its owner refers to it.
func KeyOfOther(relation *schema.Relationship, place reflect.Value) string {
	other := reflect.Indirect(place)
	var key []any
	for _, ref := range relation.References {
		if !ref.OwnPrimaryKey && ref.PrimaryValue == "" {
			key = append(key, valueOf(ref.PrimaryKey, other))
		}
	}
	return KeyName(key)
}

// Refers reports whether the foreign key of row equals the key of the struct in the belongs-to field place.
func Refers(relation *schema.Relationship, row, place reflect.Value) bool {
	if ref := relation.References[0]; len(relation.References) == 1 && !ref.OwnPrimaryKey { // fast path for two numbers
		own, other := reflect.Indirect(Place(ref.ForeignKey, row)), Place(ref.PrimaryKey, reflect.Indirect(place))
		if own.IsValid() && other.IsValid() && own.CanInt() && other.CanInt() && own.Int() == other.Int() {
			return true
		}
	}
	return LinkOf(relation, row) == KeyOfOther(relation, place)
}

// HasKeyOfOther reports whether the struct in a belongs-to field has a key. It has none if the server will generate a part of it.
func HasKeyOfOther(relation *schema.Relationship, place reflect.Value) (has bool) {
	other := reflect.Indirect(place)
	for _, ref := range relation.References {
		if ref.OwnPrimaryKey || ref.PrimaryValue != "" {
			continue
		}
		switch key := Place(ref.PrimaryKey, other); {
		case key.IsValid() && !key.IsZero():
			has = true
		case isMade(ref.PrimaryKey):
			return false
		}
	}
	return has
}

// isMade reports whether the server generates a part of a key if it is zero. A constant default does not count, because it may be zero.
func isMade(part *schema.Field) bool {
	return part.PrimaryKey && (part.AutoIncrement || part.HasDefaultValue && part.DefaultValueInterface == nil)
}
