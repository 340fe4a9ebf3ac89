package statement

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// IsSliceOfStructs reports whether rows of a model can be read into values of a type: into structs or pointers to them.
func IsSliceOfStructs(t reflect.Type) bool {
	if t.Kind() != reflect.Slice {
		return false
	}
	element := t.Elem()
	if element.Kind() == reflect.Pointer {
		element = element.Elem()
	}
	return element.Kind() == reflect.Struct
}

// ModelOf is the type of the elements of a slice of models.
func ModelOf(rows any) reflect.Type {
	element := reflect.TypeOf(rows)
	for element.Kind() == reflect.Pointer || element.Kind() == reflect.Slice {
		element = element.Elem()
	}
	return element
}

// NamesAssociation reports whether a name in Omit names associations, not a column.
func NamesAssociation(s *schema.Schema, name string) bool {
	name, _, _ = strings.Cut(name, ".")
	return name == clause.Associations || s.Relationships.Relations[name] != nil
}

// EachStruct visits the struct that value is, or the structs in it.
func EachStruct(value reflect.Value, visit func(reflect.Value)) {
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	switch value.Kind() {
	case reflect.Struct:
		visit(value)
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			EachStruct(value.Index(i), visit)
		}
	}
}

// Place is the field in row. It is not valid if an embedded pointer on the way is nil.
func Place(field *schema.Field, row reflect.Value) reflect.Value {
	place, _ := walk(field, row)
	return place
}

// NilOnPath is the first embedded pointer on the way to the field that is nil. It is not valid if there is none.
func NilOnPath(field *schema.Field, row reflect.Value) reflect.Value {
	_, none := walk(field, row)
	return none
}

// walk returns the field, or the first embedded pointer on the way that is nil.
func walk(field *schema.Field, row reflect.Value) (place, none reflect.Value) {
	for n, i := range field.StructField.Index {
		if i >= 0 {
			row = row.Field(i)
			continue
		}
		row = row.Field(-i - 1)
		if n == len(field.StructField.Index)-1 {
			break
		}
		if row.IsNil() {
			return reflect.Value{}, row
		}
		row = row.Elem()
	}
	return row, reflect.Value{}
}

// Copy copies the value of a field from one struct to another. If an embedded pointer on the way is nil in to, a value that is not zero creates the
// embedded struct. If one is nil in from, the field in to becomes zero.
func Copy(field *schema.Field, from, to reflect.Value) {
	source, place := Place(field, from), Place(field, to)
	switch {
	case !source.IsValid() && !place.IsValid(), !to.CanAddr():
		return
	case !source.IsValid():
		source = reflect.Zero(place.Type())
	case !place.IsValid() && source.IsZero():
		return
	case !place.IsValid():
		place = field.ReflectValueOf(context.Background(), to)
	}
	if place.CanSet() {
		place.Set(source)
	}
}

// ThroughPointer reports whether the way to the field leads through an embedded pointer.
func ThroughPointer(field *schema.Field) bool {
	for _, i := range field.StructField.Index {
		if i < 0 {
			return true
		}
	}
	return false
}

// TimeType is the type of time.Time.
var TimeType = reflect.TypeFor[time.Time]()

// OwnRelations are the relations that the model has fields for. GORM's map Relations also has relations of other models
// that lead to this one, and GORM adds more whenever it parses another model.
func OwnRelations(s *schema.Schema) []*schema.Relationship {
	r := &s.Relationships
	return slices.Concat(r.HasOne, r.HasMany, r.BelongsTo, r.Many2Many)
}

// HasRelations reports whether the model has any relations of its own.
func HasRelations(s *schema.Schema) bool {
	r := &s.Relationships
	return len(r.HasOne)+len(r.HasMany)+len(r.BelongsTo)+len(r.Many2Many) > 0
}

// UpdateTimes are the assignments of times that GORM makes in every update.
func UpdateTimes(db *gorm.DB, s *schema.Schema) clause.Set {
	var set clause.Set
	now := db.NowFunc()
	for _, field := range s.Fields {
		var value any
		switch field.AutoUpdateTime {
		case schema.UnixNanosecond:
			value = now.UnixNano()
		case schema.UnixMillisecond:
			value = now.UnixMilli()
		case schema.UnixSecond:
			value = now.Unix()
		case schema.UnixTime:
			value = now
		default:
			continue
		}
		if s.FieldsByDBName[field.DBName] == field {
			set = append(set, clause.Assignment{Column: clause.Column{Name: field.DBName}, Value: value})
		}
	}
	return set
}

// OwnPath copies the structs that row embeds by pointer on the way to the field, so that they belong to row alone. Other structs
// may share them: a copy of `type T struct{ *Meta }` has the same pointer.
func OwnPath(field *schema.Field, row reflect.Value) {
	if !ThroughPointer(field) || !row.CanAddr() {
		return
	}
	for n, i := range field.StructField.Index {
		if i >= 0 {
			row = row.Field(i)
			continue
		}
		row = row.Field(-i - 1)
		if n == len(field.StructField.Index)-1 || row.IsNil() || !row.CanSet() {
			return
		}
		own := reflect.New(row.Type().Elem())
		own.Elem().Set(row.Elem())
		row.Set(own)
		row = row.Elem()
	}
}

// IsComputed reports whether a field is read, never written, and in no migration. Such a field may hold what some queries compute, and need not be
// a column of the table.
func IsComputed(field *schema.Field) bool {
	return field.IgnoreMigration && !field.Creatable && !field.Updatable
}

// CopyOf is a copy of a value, which does not change with it.
func CopyOf(value reflect.Value) reflect.Value {
	held := reflect.New(value.Type()).Elem()
	held.Set(value)
	return held
}
