package gormlock

import (
	"reflect"

	"gorm.io/gorm/schema"
)

// standsFor tells whether row has the key that the statement left in the struct with this number.
func (s *structMemory) standsFor(row reflect.Value, i int) bool {
	if !row.IsValid() {
		return false
	}
	stands := true
	s.each(i, func(field *schema.Field, _, left pointee) {
		stands = stands && (!field.PrimaryKey || same(state(field, row), left))
	})
	return stands
}

// byKey is the structs by the keys that they have now: the caller may have moved them within their slice.
func (s *structMemory) byKey() map[string]reflect.Value {
	found := make(map[string]reflect.Value, s.count)
	for i := range s.count {
		if row := s.row(i); row.IsValid() {
			found[s.keyIn(row)] = row
		}
	}
	return found
}

func (s *structMemory) keyIn(row reflect.Value) string {
	key := make([]any, len(s.model.schema.PrimaryFields))
	for i, field := range s.model.schema.PrimaryFields {
		if place := placeOf(field, row); place.IsValid() {
			key[i] = place.Interface()
		}
	}
	return keyName(key)
}
