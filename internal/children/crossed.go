package children

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// ForeignOf is the foreign key of a struct by a belongs-to. NULL is nil.
func ForeignOf(relation *schema.Relationship, row reflect.Value) []any {
	key := make([]any, len(relation.References))
	for i, ref := range relation.References {
		if place := reflect.Indirect(statement.Place(ref.ForeignKey, row)); place.IsValid() {
			key[i] = place.Interface()
		}
	}
	return key
}

// PartOf returns a part of a foreign key that has changed while another part has not. Then the foreign key names a row that nobody has asked for. It
// returns nil if there is no such part, or if the foreign key named no row before. A zero names one only in a struct that was read, and only if it
// has changed.
func PartOf(relation *schema.Relationship, was, is []any, read bool) (changed *schema.Field) {
	same := false
	for i, ref := range relation.References {
		isZero := was[i] == nil || reflect.ValueOf(was[i]).IsZero()
		switch isSame := statement.KeyName(was[i:i+1]) == statement.KeyName(is[i:i+1]); {
		case was[i] == nil, isZero && (isSame || !read):
			return nil
		case isSame:
			same = true
		default:
			changed = ref.ForeignKey
		}
	}
	if !same {
		return nil
	}
	return changed
}

// refuseTakenAlong returns the error of a child that gets the key of its parent if a column of that key is also a part of the foreign key of
// another association of the child, which would be another row then.
func refuseTakenAlong(stmt *gorm.Statement, relation *schema.Relationship, crossed []*schema.Relationship, of *model.Model, parent, child reflect.Value) error {
	gets := map[string]any{}
	for _, ref := range relation.References {
		if ref.OwnPrimaryKey {
			gets[ref.ForeignKey.DBName], _ = ref.PrimaryKey.ValueOf(stmt.Context, parent)
		}
	}
	read, _ := of.Shows(child)
	for _, own := range crossed {
		was := ForeignOf(own, child)
		is := slices.Clone(was)
		moves := false
		for i, ref := range own.References {
			if value, given := gets[ref.ForeignKey.DBName]; given {
				is[i] = value
				moves = moves || statement.KeyName(was[i:i+1]) != statement.KeyName(is[i:i+1])
			}
		}
		if !moves {
			continue
		}
		place := statement.Place(own.Field, child)
		if !place.IsValid() || place.IsZero() {
			if changed := PartOf(own, was, is, read); changed != nil {
				return fmt.Errorf("gormlock: %s.%s: a %s gets another %s with its new %s, by which its foreign key of %s would name another row of %s: set its %s to the new value too if that row is meant, or set the other columns of that foreign key first",
					relation.Schema.Name, relation.Name, own.Schema.Name, changed.Name, relation.Schema.Name, own.Name, own.FieldSchema.Table, changed.Name)
			}
			continue
		}
		for i, ref := range own.References {
			other, zero := ref.PrimaryKey.ValueOf(context.Background(), reflect.Indirect(place))
			if _, given := gets[ref.ForeignKey.DBName]; !given || zero && !statement.HasKeyOfOther(own, place) {
				continue // a hook may give a new one its part
			}
			if statement.KeyName([]any{other}) != statement.KeyName(is[i:i+1]) {
				return heldElsewhere(relation, own, ref, is[i], place)
			}
		}
	}
	return nil
}

// NoticeArrived notes which children have the foreign key of their parent already, before GORM saves their own associations.
func NoticeArrived(db *gorm.DB) {
	eachGiven(db, func(g *graph, at placeOfKey, one given) {
		one.arrived = one.now(at.key) == one.value
		g.given[at] = one
	})
}

// RefuseLost refuses to store a child if one of its own associations has given it another foreign key than its parent has.
func RefuseLost(db *gorm.DB) {
	eachGiven(db, func(_ *graph, at placeOfKey, one given) {
		if one.arrived && one.now(at.key) != one.value {
			fault.Add(db, fmt.Errorf("gormlock: %s: %s gets another %s from one of its own associations, and would have another parent by it: let both have one %s",
				one.where(), one.name(), at.key.Name, at.key.Name))
		}
	})
}

// eachGiven visits the foreign keys that parents give to the structs of a statement, as long as there is no error.
func eachGiven(db *gorm.DB, visit func(*graph, placeOfKey, given)) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil || len(stmt.Schema.Relationships.BelongsTo) == 0 || !GotKeys(stmt) {
		return
	}
	g := graphOf(stmt)
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		for _, field := range stmt.Schema.Fields {
			if db.Error != nil || !row.CanAddr() || row.Type() != stmt.Schema.ModelType {
				return
			}
			at := placeOfKey{row.Addr().Pointer(), field}
			if one, is := g.given[at]; is {
				visit(g, at, one)
			}
		}
	})
}

// heldElsewhere is the error of a child that holds an association that its new parent would change.
func heldElsewhere(relation, own *schema.Relationship, ref *schema.Reference, gets any, place reflect.Value) error {
	s := own.FieldSchema
	key := map[string]any{}
	for _, field := range s.PrimaryFields {
		key[field.DBName], _ = field.ValueOf(context.Background(), reflect.Indirect(place))
	}
	return fmt.Errorf("gormlock: %s.%s holds %s, and the new %s gives the %s the %s %s, by which it would name another row: let both have one %s, or set %s to nil and its foreign key to what it is to be",
		own.Schema.Name, own.Name, fault.Row(s.Table, s.PrimaryFieldDBNames, key), relation.Schema.Name, own.Schema.Name, ref.ForeignKey.Name, statement.KeyName([]any{gets}), ref.ForeignKey.Name, own.Name)
}
