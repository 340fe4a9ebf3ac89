package whereabouts

import (
	"reflect"

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
	seems column.Value  // the version that it shows meanwhile
	looks reflect.Value // the struct, as it was
}

// veilOf is the veil of a struct with a version. If there is no other version to show, the struct seems not to be read.
func veilOf(m *model.Model, row reflect.Value) (v veil, has bool) {
	if m.Column == nil || !row.IsValid() || !row.CanAddr() {
		return veil{}, false
	}
	v = veil{model: m, row: row, key: memory.KeyIn(m, row), is: m.Column.Read(row), seems: m.Column.Unread()}
	return v, m.Column.Loaded(v.is)
}

// hide hides the version, if the struct still has it.
func (v *veil) hide() {
	if v.isOver(v.row, v.is) {
		v.model.Column.Write(v.row, v.seems)
	}
}

// show shows the version again, if the struct has not got another one.
func (v *veil) show() { v.showIn(v.row) }

// showIn does the same in a copy.
func (v *veil) showIn(row reflect.Value) {
	if v.isOver(row, v.seems) {
		v.model.Column.Write(row, v.is)
	}
}

// keepLooks keeps the columns of the struct.
func (v *veil) keepLooks() {
	v.looks = reflect.New(v.row.Type()).Elem()
	v.looks.Set(v.row)
}

// looksLike reports whether a struct has the same values in all columns except the version.
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
