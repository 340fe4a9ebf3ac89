package reading

import (
	"database/sql"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// A row can be read into something other than a struct of its model: a map, a form, a number. An update with it compares the version that it
// carries, so a rollback must reach that version too.

// carriers visits what carries rows or columns in the destination of a query: structs, maps, and places that can be set.
func carriers(value reflect.Value, visit func(reflect.Value)) {
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface && behind(value) {
		value = value.Elem()
	}
	switch value.Kind() {
	case reflect.Invalid:
	case reflect.Slice, reflect.Array:
		for i := 0; i < value.Len() && value.Type().Elem().Kind() != reflect.Uint8; i++ {
			carriers(value.Index(i), visit)
		}
	default:
		visit(value)
	}
}

// behind reports whether an interface leads to a place that can be set, or to a map.
func behind(value reflect.Value) bool {
	kind := value.Elem().Kind()
	return kind == reflect.Pointer || kind == reflect.Map || kind == reflect.Slice || kind == reflect.Interface
}

// modelsRead are the versioned models whose rows a query may have read: the model of the statement, or the models whose tables its text names.
func modelsRead(db *gorm.DB, s *schema.Schema, text string) []*model.Model {
	if s != nil {
		if m := model.OfSchema(db, s); m.Column != nil {
			return []*model.Model{m}
		}
	}
	var named []*model.Model
	text = strings.ToLower(text)
	for _, m := range versioned(db) {
		if names(text, strings.ToLower(tableOf(m))) {
			named = append(named, m)
		}
	}
	return named
}

// isOwnRow reports whether a text names the table of a schema that belongs to none of the models: then the row has no version.
func isOwnRow(text string, s *schema.Schema, models []*model.Model) bool {
	if s == nil {
		return false
	}
	own := s.Table[strings.LastIndexByte(s.Table, '.')+1:]
	return names(strings.ToLower(text), strings.ToLower(own)) &&
		!slices.ContainsFunc(models, func(m *model.Model) bool { return strings.EqualFold(tableOf(m), own) })
}

// names reports whether a text contains a name that is not part of a longer one.
func names(text, name string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], name)
		if at < 0 || name == "" {
			return false
		}
		start, end := from+at, from+at+len(name)
		if (start == 0 || !inName(text[start-1])) && (end == len(text) || !inName(text[end])) {
			return true
		}
		from = end
	}
}

func inName(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z'
}

// forgetCarrier gives whatever carries a row of one of the models a version that no row has.
func forgetCarrier(db *gorm.DB, models []*model.Model, value reflect.Value, text string) {
	for _, m := range models {
		switch kind := value.Kind(); {
		case kind == reflect.Map:
			forgetInMap(m, value)
		case value.Type() == m.Schema.ModelType && value.CanAddr():
			m.Column.Write(value, m.Column.Unread())
		case kind == reflect.Struct && !scans(value):
			forgetForm(db, m, value)
		case value.CanSet() && sqltext.ReadsInto(text, m.Column.Field.DBName):
			forgetPlace(m, value)
		}
	}
}

func forgetInMap(m *model.Model, value reflect.Value) {
	row, _ := value.Interface().(map[string]any)
	for _, name := range keysOfVersion(m, row) {
		row[name] = m.Column.Any(m.Column.Unread())
	}
}

// keysOfVersion are the keys of a map that an update would use as the model's version.
func keysOfVersion(m *model.Model, row map[string]any) (names []string) {
	for name, held := range row {
		if held != nil && m.Schema.LookUpField(name) == m.Column.Field {
			names = append(names, name)
		}
	}
	return names
}

// forgetForm removes the version of a row from a struct that is not the model.
func forgetForm(db *gorm.DB, m *model.Model, row reflect.Value) {
	for _, field := range fieldsOfForm(db, m, row) {
		if column, holds := m.Column.FormColumn(field); !holds { // a float, a text, or a type with its own Scan
			place := reflect.Indirect(statement.Place(field, row))
			if place.IsValid() && place.CanSet() && !place.IsZero() {
				forgetPlace(m, place)
			}
		} else if held := column.Read(row); !held.Null && !column.Unset(held) {
			column.Write(row, column.Unread())
		}
	}
}

// forgetTagged removes the version of a row from the tagged fields of a form and of the structs that it embeds.
func forgetTagged(form *model.Model, row reflect.Value) {
	if !row.CanAddr() {
		return
	}
	for _, field := range form.Schema.Fields {
		tagged := form.Column
		if tagged == nil || field != tagged.Field {
			words := strings.Split(field.Tag.Get("gormlock"), ",")
			if strings.TrimSpace(words[0]) != "version" {
				continue
			}
			var err error
			if tagged, err = column.ReadVersion(field, words[1:]); err != nil {
				continue
			}
		}
		if held := tagged.Read(row); !held.Null && !tagged.Unset(held) {
			tagged.Write(row, tagged.Unread())
		}
	}
}

// isModel reports whether a text reads rows of a model into structs of the schema, and not into forms: such structs have one version, and none of
// another model.
func isModel(db *gorm.DB, s *schema.Schema, text string) bool {
	if s == nil {
		return false
	}
	m := model.OfSchema(db, s)
	if m.Column == nil || m.Err != nil {
		return false
	}
	own := tableOf(m)
	named := names(text, own) || names(strings.ToLower(text), strings.ToLower(own))
	return !slices.ContainsFunc(versioned(db), func(other *model.Model) bool {
		if other == m || named && !strings.EqualFold(tableOf(other), own) {
			return false
		}
		return slices.ContainsFunc(s.Fields, func(field *schema.Field) bool {
			return field != m.Column.Field && carriesVersion(other, s, field)
		})
	})
}

// fieldsOfForm are the fields of a struct that may hold the version of a row.
func fieldsOfForm(db *gorm.DB, m *model.Model, row reflect.Value) (fields []*schema.Field) {
	stmt := &gorm.Statement{DB: db}
	if !row.CanAddr() || stmt.Parse(row.Addr().Interface()) != nil {
		return nil
	}
	for _, field := range stmt.Schema.Fields {
		if carriesVersion(m, stmt.Schema, field) {
			fields = append(fields, field)
		}
	}
	return fields
}

// carriesVersion reports whether a field of a form may hold the version of a row: an update uses it as the model's version, or it has the tag. The
// tag counts because a form may embed models under prefixes.
func carriesVersion(m *model.Model, form *schema.Schema, field *schema.Field) bool {
	name := m.Column.Field.DBName
	word, _, _ := strings.Cut(field.Tag.Get("gormlock"), ",")
	return field.DBName == name || form.LookUpField(name) == field || strings.TrimSpace(word) == "version"
}

func scans(value reflect.Value) bool {
	if value.Type() == statement.TimeType {
		return true
	}
	_, is := reflect.New(value.Type()).Interface().(sql.Scanner)
	return is
}

// forgetPlace replaces a version that was read alone by a version that no row has.
func forgetPlace(m *model.Model, place reflect.Value) {
	none := m.Column.Any(m.Column.Unread())
	if scanner, is := place.Addr().Interface().(sql.Scanner); is {
		_ = scanner.Scan(none) // the type can hold what it can be read from
		return
	}
	at, temporal := none.(time.Time)
	switch kind := place.Kind(); {
	case kind == reflect.Interface && place.NumMethod() == 0:
		place.Set(reflect.ValueOf(none))
	case temporal:
		if place.Type() == statement.TimeType {
			place.Set(reflect.ValueOf(at))
		}
	case place.CanInt():
		place.SetInt(-1)
	case place.CanUint():
		place.SetUint(min(uint64(math.MaxUint64)>>(64-place.Type().Bits()), math.MaxInt64-1))
	case place.CanFloat():
		place.SetFloat(-1)
	case kind == reflect.String:
		place.SetString("-1")
	}
}
