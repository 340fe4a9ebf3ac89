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
	fits     bool   // it has the key that the struct names
	key      string // if not: the foreign key before GORM sets it
	saving
}

// saving is what a statement does to a foreign key and the struct that is held for it.
type saving struct {
	saved    bool // GORM saves it, and sets the foreign key
	explicit bool // the caller named it
	selected bool // the caller named the foreign key, in Select
	direct   bool // GORM writes the foreign key without it
	assigned bool // the foreign key is to become its key
	stale    bool // the foreign key was assigned, and it is what the row belonged to before
	written  bool // the statement writes the foreign key
}

// kept is what a field held.
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
