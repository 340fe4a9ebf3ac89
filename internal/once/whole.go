package once

import (
	"encoding/json"
	"reflect"
	"strings"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/reading"
)

// loseUnkept makes structs in dest unread if JSON has not kept them whole. It returns the text to store then, so that every later call gets
// the same.
func (o *Call) loseUnkept(stored []byte, made, dest any) ([]byte, error) {
	unlike := reading.Unlike(o.Session, made, dest)
	if !reading.LoseResult(o.Session, dest, func(m *model.Model) bool { return unlike[m] || !keepsColumns(m) }) {
		return stored, nil
	}
	return json.Marshal(reflect.ValueOf(dest).Elem().Interface())
}

// loseChanged makes structs in dest unread if the stored text does not hold them whole any more, because the type has got or lost fields since,
// or hides one.
func (o *Call) loseChanged(stored []byte, dest any) {
	now, err := json.Marshal(reflect.ValueOf(dest).Elem().Interface())
	changed := err != nil || lacks(parsed(stored), parsed(now)) || lacks(parsed(now), parsed(stored))
	reading.LoseResult(o.Session, dest, func(m *model.Model) bool { return changed || !keepsColumns(m) })
}

func parsed(text []byte) (value any) {
	_ = json.Unmarshal(text, &value) // it was read before
	return value
}

// lacks reports whether objects in stored lack names that they have in now.
func lacks(stored, now any) bool {
	switch now := now.(type) {
	case map[string]any:
		had, is := stored.(map[string]any)
		for name, value := range now {
			was, has := had[name]
			for other := range had {
				if !has && strings.EqualFold(other, name) {
					was, has = had[other], true
				}
			}
			if !is || !has || lacks(was, value) {
				return true
			}
		}
	case []any:
		had, _ := stored.([]any)
		for i, value := range now {
			if i >= len(had) || lacks(had[i], value) {
				return true
			}
		}
	}
	return false
}

// keepsColumns reports whether JSON has a place for each column of a model that a Save writes. The soft-delete column does not count: it is NULL
// in every row that a query finds.
func keepsColumns(m *model.Model) bool {
	for _, field := range m.Schema.FieldsByDBName {
		if field.Updatable && !keepsField(m.Schema.ModelType, field) && !m.IsSoftDelete(field) {
			return false
		}
	}
	return true
}

func keepsField(t reflect.Type, field *schema.Field) bool {
	for _, i := range field.StructField.Index {
		if i < 0 { // GORM's mark for a pointer on the way to the field
			i = -i - 1
		}
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || i >= t.NumField() || marshalsItself(reflect.New(t).Elem()) {
			return true // only the text shows what becomes of it
		}
		if !isKept(t.Field(i)) {
			return false
		}
		t = t.Field(i).Type
	}
	return true
}
