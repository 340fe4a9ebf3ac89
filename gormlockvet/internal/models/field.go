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

	PrimaryKey                     bool
	Creatable, Updatable, Readable bool
	IgnoreMigration                bool
	Serialized                     bool
	Open                           bool // its type is a type parameter, or has one
	AutoTime                       bool // GORM sets it when a row is created or updated
	kind                           dataKind
}

// dataKind is what GORM takes a Go type for.
type dataKind uint8

const (
	noData dataKind = iota
	intData
	uintData
	timeData
	otherData // a column of another kind
)

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
	f := &Field{
		Var: v, Tag: tag, Settings: schema.ParseTagSetting(tag.Get("gorm"), ";"),
		Creatable: true, Updatable: true, Readable: true,
	}
	f.Column = f.Settings["COLUMN"]
	f.PrimaryKey = truth(f.Settings["PRIMARYKEY"]) || truth(f.Settings["PRIMARY_KEY"])
	f.kind = kindOf(v.Type())
	if f.Open = hasTypeParam(v.Type()); f.Open {
		f.kind = otherData
	}
	if f.Settings["JSON"] != "" || f.Settings["SERIALIZER"] != "" {
		f.Serialized = true
		f.kind = max(f.kind, otherData)
	}
	f.AutoTime = f.setsTime("AUTOCREATETIME", "CreatedAt") || f.setsTime("AUTOUPDATETIME", "UpdatedAt")
	if f.Settings["TYPE"] != "" && f.kind == noData {
		f.kind = otherData
	}
	f.permit()
	return f
}

func (f *Field) setsTime(setting, name string) bool {
	value, ok := f.Settings[setting]
	return ok && truth(value) || !ok && f.Var.Name() == name && (f.kind == timeData || f.kind == intData || f.kind == uintData)
}

// permit reads who may do what with the field.
func (f *Field) permit() {
	if value, ok := f.Settings["-"]; ok {
		switch strings.ToLower(strings.TrimSpace(value)) {
		case "-", "all":
			f.Creatable, f.Updatable, f.Readable, f.kind = false, false, false, noData
		case "migration":
			f.IgnoreMigration = true
		}
	}
	if value, ok := f.Settings["->"]; ok {
		f.Creatable, f.Updatable, f.Readable = false, false, !strings.EqualFold(value, "false")
	}
	if value, ok := f.Settings["<-"]; ok {
		f.Creatable, f.Updatable = true, true
		if value != "<-" {
			f.Creatable, f.Updatable = strings.Contains(value, "create"), strings.Contains(value, "update")
		}
	}
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
	if !asked && (!f.Var.Embedded() || isValuer(t) || !f.Creatable && !f.Updatable && !f.Readable) {
		return nil, false
	}
	return s, true
}

func truth(value string) bool { return value != "" && !strings.EqualFold(value, "false") }

// kindOf is what GORM makes of a type: of a Valuer, the kind of its first field.
func kindOf(t types.Type) dataKind {
	for {
		pointer, ok := t.Underlying().(*types.Pointer)
		if !ok {
			break
		}
		t = pointer.Elem()
	}
	if hasMethod(t, "GormDataType") {
		return otherData
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch info := u.Info(); {
		case info&types.IsUnsigned != 0 && u.Kind() != types.Uintptr:
			return uintData
		case info&types.IsInteger != 0 && u.Kind() != types.Uintptr:
			return intData
		case info&(types.IsBoolean|types.IsString) != 0, u.Kind() == types.Float32, u.Kind() == types.Float64:
			return otherData
		}
	case *types.Slice:
		if basic, ok := u.Elem().Underlying().(*types.Basic); ok && basic.Kind() == types.Byte {
			return otherData
		}
	case *types.Struct:
		switch {
		case isTime(u):
			return timeData
		case isValuer(t) && u.NumFields() > 0:
			return kindOf(u.Field(0).Type())
		}
	}
	if isValuer(t) {
		return otherData
	}
	return noData
}

// isTime holds for time.Time and for types that convert to it.
func isTime(s *types.Struct) bool {
	return s.NumFields() == 3 && s.Field(0).Name() == "wall" && s.Field(0).Pkg() != nil && s.Field(0).Pkg().Path() == "time"
}

func isValuer(t types.Type) bool { return hasMethod(t, "Value") && !isModelLike(t) }

// isModelLike holds for a struct whose method Value is not that of driver.Valuer.
func isModelLike(t types.Type) bool {
	method, _, _ := types.LookupFieldOrMethod(t, true, nil, "Value")
	fn, ok := method.(*types.Func)
	return !ok || fn.Signature().Params().Len() != 0 || fn.Signature().Results().Len() != 2
}

func hasMethod(t types.Type, name string) bool {
	if _, ok := types.Unalias(t).(*types.Named); !ok {
		return false
	}
	method, _, _ := types.LookupFieldOrMethod(t, true, nil, name)
	_, ok := method.(*types.Func)
	return ok
}

func hasTypeParam(t types.Type) bool {
	switch t := types.Unalias(t).(type) {
	case *types.TypeParam:
		return true
	case *types.Pointer:
		return hasTypeParam(t.Elem())
	case *types.Named:
		for i := range t.TypeArgs().Len() {
			if hasTypeParam(t.TypeArgs().At(i)) {
				return true
			}
		}
	}
	return false
}

// primaryKeys returns the fields that are the primary key of the model.
func primaryKeys(fields []*Field) (keys []*Field) {
	byColumn := map[string]*Field{}
	for _, f := range fields {
		if f.Column == "" {
			continue
		}
		have, ok := byColumn[f.Column]
		if ok && ((!f.Creatable && !f.Updatable && !f.Readable) || f.Depth >= have.Depth) {
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
