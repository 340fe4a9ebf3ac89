package belongs

import (
	"reflect"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// holding is an association in the field of a struct.
type holding struct {
	relation *schema.Relationship
	row      reflect.Value
	place    reflect.Value
	was      statement.Association
	keys     []kept // the fields of the foreign key
	fits     bool   // its key equals the foreign key of the struct
	key      string // if it does not fit: the foreign key before GORM sets it
	saving
}

// saving is what a statement does to an association and its foreign key.
type saving struct {
	saved    bool // GORM saves the association, and sets the foreign key
	explicit bool // the caller named the association
	selected bool // the caller named the foreign key, in Select
	direct   bool // GORM writes the foreign key and does not save the association
	assigned bool // the caller assigned the association, so the foreign key gets its key
	stale    bool // the caller assigned the foreign key, so the association is the old one
	written  bool // the statement writes the foreign key
}

// kept is a field with its old value.
type kept struct{ place, value, behind reflect.Value }

func keep(place reflect.Value) kept {
	k := kept{place: place, value: reflect.New(place.Type()).Elem()}
	k.value.Set(place)
	if place.Kind() == reflect.Pointer && !place.IsNil() { // GORM writes through the pointer
		k.behind = reflect.New(place.Type().Elem()).Elem()
		k.behind.Set(place.Elem())
	}
	return k
}

func (k kept) putBack() {
	k.place.Set(k.value)
	if k.behind.IsValid() {
		k.place.Elem().Set(k.behind)
	}
}
