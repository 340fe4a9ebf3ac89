package whereabouts

import (
	"reflect"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// veil is a struct whose version is out of sight for a while.
type veil struct {
	model *model.Model
	row   reflect.Value
	key   string
	is    column.Value
	seems column.Value  // what it has meanwhile
	keys  []veiledKey   // and what of its foreign keys
	looks reflect.Value // the struct, as it was
}

// veiledKey is a foreign key that the statement has given to a child.
type veiledKey struct {
	of        *schema.Field
	is, seems reflect.Value
}

// veilOf is that of a struct which has a version: without another one to show it seems not to be read.
func veilOf(m *model.Model, row reflect.Value) (v veil, has bool) {
	if m.Column == nil || !row.IsValid() || !row.CanAddr() {
		return veil{}, false
	}
	v = veil{model: m, row: row, key: memory.KeyIn(m, row), is: m.Column.Read(row), seems: m.Column.Unread()}
	return v, !m.Column.Unset(v.is)
}

// hide puts the version out of sight, if the struct has it.
func (v *veil) hide() {
	if v.isOver(v.row, v.is) {
		v.model.Column.Write(v.row, v.seems)
		v.hideKeys(v.row)
	}
}

// show shows it again, if the struct has got no other one.
func (v *veil) show() { v.showIn(v.row) }

// showIn does so in a copy.
func (v *veil) showIn(row reflect.Value) {
	if !v.isOver(row, v.seems) {
		return
	}
	v.model.Column.Write(row, v.is)
	for _, key := range v.keys {
		if place := statement.Place(key.of, row); place.IsValid() && sameKey(place, key.seems) {
			place.Set(key.is)
		}
	}
}

func (v *veil) hideKeys(row reflect.Value) {
	for _, key := range v.keys {
		statement.Place(key.of, row).Set(key.seems)
	}
}

// sameKey reports whether two foreign keys are the same, or point to the same.
func sameKey(a, b reflect.Value) bool { return reflect.DeepEqual(a.Interface(), b.Interface()) }

// seemsAsBefore gives a child that a statement has moved, and only moved, the foreign keys that it had before.
func (v *veil) seemsAsBefore(moved []Mover) {
	for _, step := range moved {
		step.Before(v.row, func(key *schema.Field, was reflect.Value) {
			if place := statement.Place(key, v.row); place.IsValid() && place.CanSet() {
				is := reflect.New(place.Type()).Elem()
				is.Set(place)
				v.keys = append(v.keys, veiledKey{key, is, was})
			}
		})
	}
}

// keepLooks keeps what the struct has in its columns while the version is out of sight.
func (v *veil) keepLooks() {
	v.looks = reflect.New(v.row.Type()).Elem()
	v.looks.Set(v.row)
	v.hideKeys(v.looks)
}

// looksLike reports whether a struct has the same in all columns but the version.
func (v *veil) looksLike(row reflect.Value) bool {
	for _, field := range v.model.Schema.FieldsByDBName {
		if field == v.model.Column.Field {
			continue
		}
		mine, its := statement.Place(field, v.looks), statement.Place(field, row)
		if mine.IsValid() != its.IsValid() || mine.IsValid() && !reflect.DeepEqual(mine.Interface(), its.Interface()) {
			return false
		}
	}
	return true
}

// isOver reports whether a struct stands for the row, and has this version.
func (v *veil) isOver(row reflect.Value, version column.Value) bool {
	now := v.model.Column.Read(row)
	return (now.Equal(version) || v.model.Column.Unset(now) && v.model.Column.Unset(version)) && memory.KeyIn(v.model, row) == v.key
}
