// Package models reads the structs of a program as GORM and gormlock do when they meet them: columns, tags, tables.
package models

import (
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm/schema"
)

// Field is a field of a model, as schema.ParseField sees it.
type Field struct {
	Var      *types.Var
	Top      *types.Var // the field of the model itself that it is, or is embedded by
	Tag      reflect.StructTag
	Settings map[string]string // of the tag gorm
	Column   string            // empty: no column
	Depth    int               // how many structs it is embedded by

	PrimaryKey      bool
	IgnoreMigration bool
	access
	data
}

var naming = schema.NamingStrategy{IdentifierMaxLength: 64}

// TableName returns the name that GORM gives the table of a struct by default.
func TableName(structName string) string { return naming.TableName(structName) }

// FieldsOf returns the fields of a struct, those of embedded structs in their places.
func FieldsOf(s *types.Struct) []*Field {
	fields := fieldsOf(s, 0, map[*types.Struct]bool{})
	for _, f := range fields {
		if f.Column == "" && f.kind != noData {
			f.Column = naming.ColumnName("", f.Var.Name())
		}
	}
	return fields
}

func fieldsOf(s *types.Struct, depth int, above map[*types.Struct]bool) (fields []*Field) {
	if above[s] {
		return nil
	}
	above[s] = true
	defer delete(above, s)
	for i := range s.NumFields() {
		v := s.Field(i)
		if !ast.IsExported(v.Name()) {
			continue
		}
		f := parse(v, reflect.StructTag(s.Tag(i)))
		f.Depth, f.Top = depth, v
		inner, embedded := f.embeds()
		if !embedded {
			fields = append(fields, f)
			continue
		}
		below := fieldsOf(inner, depth+1, above)
		prefix := f.Settings["EMBEDDEDPREFIX"]
		for _, b := range below {
			b.Top = v
			if b.Column == "" && b.kind != noData {
				b.Column = naming.ColumnName("", b.Var.Name())
			}
			if b.Column != "" {
				b.Column = prefix + b.Column
			}
			for key, value := range f.Settings {
				b.Settings[key] = value
			}
		}
		fields = append(fields, below...)
	}
	return fields
}

func parse(v *types.Var, tag reflect.StructTag) *Field {
	settings := schema.ParseTagSetting(tag.Get("gorm"), ";")
	f := &Field{
		Var: v, Tag: tag, Settings: settings, Column: settings["COLUMN"],
		PrimaryKey:      truth(settings["PRIMARYKEY"]) || truth(settings["PRIMARY_KEY"]),
		IgnoreMigration: strings.EqualFold(strings.TrimSpace(settings["-"]), "migration"),
		access:          accessOf(settings),
		data:            dataOf(v, settings),
	}
	if ignored(settings["-"]) {
		f.kind = noData
	}
	return f
}

// embeds returns the struct whose fields stand in the place of this one.
func (f *Field) embeds() (*types.Struct, bool) {
	t := f.Var.Type()
	if pointer, ok := t.Underlying().(*types.Pointer); ok {
		t = pointer.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok || f.kind == timeData {
		return nil, false
	}
	_, asked := f.Settings["EMBEDDED"]
	if !asked && (!f.Var.Embedded() || isValuer(t) || f.none()) {
		return nil, false
	}
	return s, true
}

func truth(value string) bool { return value != "" && !strings.EqualFold(value, "false") }

// primaryKeys returns the fields that are the primary key of the model.
func primaryKeys(fields []*Field) (keys []*Field) {
	byColumn := map[string]*Field{}
	for _, f := range fields {
		if f.Column == "" {
			continue
		}
		have, ok := byColumn[f.Column]
		if ok && (f.none() || f.Depth >= have.Depth) {
			continue
		}
		byColumn[f.Column] = f
		if ok {
			keys = slices.DeleteFunc(keys, func(k *Field) bool { return k == have })
		}
		if f.PrimaryKey {
			keys = append(keys, f)
		}
	}
	if len(keys) == 0 {
		if f := byColumn["id"]; f != nil {
			return []*Field{f}
		}
		for _, f := range fields {
			if f.Column != "" && (f.Var.Name() == "id" || f.Var.Name() == "ID") {
				return []*Field{f}
			}
		}
	}
	return keys
}

// intDefault returns the number that the tag gives the column by default.
func (f *Field) intDefault() (int64, bool) {
	value, ok := f.Settings["DEFAULT"]
	value = strings.TrimSpace(value)
	if !ok || f.kind != intData || value == "" || strings.EqualFold(value, "null") ||
		strings.Contains(value, "(") && strings.Contains(value, ")") {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 0, 64)
	return n, err == nil
}

// SingularTableName returns the name of the table where the program asks for singular names.
func SingularTableName(structName string) string {
	return schema.NamingStrategy{IdentifierMaxLength: 64, SingularTable: true}.TableName(structName)
}
