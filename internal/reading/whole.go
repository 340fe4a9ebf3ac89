package reading

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// A result that was stored as text may have lost columns: JSON leaves out fields, and types hide values. Its structs still have the versions of
// their rows, so a Save would empty those columns.

// Unlike returns the models of structs in got, a pointer, that do not hold the same columns as in made. got is a copy of made.
func Unlike(db *gorm.DB, made, got any) map[*model.Model]bool {
	found := unlike{result: newResult(&gorm.DB{Config: db.Config}), models: map[*model.Model]bool{}}
	if !install.Of(db).WithoutVersions {
		found.walk(inPlace(reflect.ValueOf(made)), reflect.ValueOf(got).Elem())
	}
	return found.models
}

// LoseResult makes the structs of some models unread in what dest points to, and reports whether there are any.
func LoseResult(db *gorm.DB, dest any, isLost func(*model.Model) bool) (lost bool) {
	if install.Of(db).WithoutVersions {
		return false
	}
	found := newResult(&gorm.DB{Config: db.Config})
	found.look(reflect.ValueOf(dest).Elem(), false)
	for m, rows := range found.models {
		if isLost(m) {
			unread(m, rows)
			lost = true
		}
	}
	for _, b := range found.boxes {
		b.replace(func(entry reflect.Value) { lost = LoseResult(db, entry.Addr().Interface(), isLost) || lost })
	}
	return lost
}

// unlike compares a value with a copy of it.
type unlike struct {
	*result
	models map[*model.Model]bool
}

func (u *unlike) walk(made, got reflect.Value) {
	if !made.IsValid() || !got.IsValid() || made.Type() != got.Type() {
		return
	}
	switch got.Kind() {
	case reflect.Pointer, reflect.Interface:
		if got.Kind() == reflect.Pointer && !got.IsNil() {
			if u.seen[got.Pointer()] {
				return
			}
			u.seen[got.Pointer()] = true
		}
		u.walk(inPlace(made.Elem()), inPlace(got.Elem()))
	case reflect.Slice, reflect.Array:
		for i := 0; i < min(made.Len(), got.Len()) && mayHold(got.Type().Elem()); i++ {
			u.walk(made.Index(i), got.Index(i))
		}
	case reflect.Map:
		for entries := got.MapRange(); mayHold(got.Type().Elem()) && entries.Next(); {
			u.walk(inPlace(made.MapIndex(entries.Key())), inPlace(entries.Value()))
		}
	case reflect.Struct:
		if scans(got) {
			return
		}
		if m := u.modelOf(got); m != nil && !haveSameColumns(m, made, got) {
			u.models[m] = true
		}
		for i := range got.NumField() {
			u.walk(reached(made.Field(i)), reached(got.Field(i)))
		}
	default:
	}
}

// inPlace returns a value, or an addressable copy of it, so that all its fields can be reached.
func inPlace(value reflect.Value) reflect.Value {
	if value.Kind() == reflect.Invalid || value.CanAddr() {
		return value
	}
	return statement.CopyOf(value)
}

// haveSameColumns reports whether two structs hold the same values in all columns that a Save writes.
func haveSameColumns(m *model.Model, a, b reflect.Value) bool {
	for _, field := range m.Schema.FieldsByDBName {
		if field.Updatable && field != m.Column.Field && !SameIn(field, a, b) {
			return false
		}
	}
	return true
}

// SameIn reports whether a column would be stored alike. JSON may be written differently.
func SameIn(field *schema.Field, a, b reflect.Value) bool {
	x, y := statement.Place(field, a), statement.Place(field, b)
	if !x.IsValid() || !y.IsValid() {
		return x.IsValid() == y.IsValid()
	}
	if reflect.DeepEqual(x.Interface(), y.Interface()) {
		return true
	}
	ctx := context.Background()
	first, _ := field.ValueOf(ctx, a)
	second, _ := field.ValueOf(ctx, b)
	first, second = sentAs(first), sentAs(second)
	if field.Serializer != nil || field.IndirectFieldType.Kind() == reflect.Slice && field.IndirectFieldType.Implements(marshaler) {
		first, second = asJSON(first), asJSON(second)
	}
	return reflect.DeepEqual(first, second)
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// asJSON returns the content of a JSON text, and any other value as it is.
func asJSON(value any) any {
	text := reflect.ValueOf(value)
	switch {
	case text.Kind() == reflect.String:
		text = reflect.ValueOf([]byte(text.String()))
	case text.Kind() != reflect.Slice || text.Type().Elem().Kind() != reflect.Uint8:
		return value
	}
	var says any
	decoder := json.NewDecoder(bytes.NewReader(text.Bytes()))
	decoder.UseNumber()
	if decoder.Decode(&says) != nil {
		return value
	}
	return says
}

// sentAs returns a value as a driver gets it, and a time without its zone.
func sentAs(value any) any {
	if sent, err := statement.Sent(value); err == nil {
		value = sent
	}
	switch at := value.(type) {
	case time.Time:
		return at.UnixNano()
	case *time.Time:
		if at != nil {
			return at.UnixNano()
		}
	}
	return value
}
