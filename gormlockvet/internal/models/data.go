package models

import "go/types"

// data is what GORM takes the type of a field for.
type data struct {
	kind       dataKind
	Serialized bool
	Open       bool // the type is a type parameter, or has one
	AutoTime   bool // GORM sets it when a row is created or updated
}

// dataOf reads the type of a field and what its tag makes of it.
func dataOf(v *types.Var, settings map[string]string) data {
	d := data{kind: kindOf(v.Type()), Open: hasTypeParam(v.Type())}
	if d.Open {
		d.kind = otherData
	}
	if settings["JSON"] != "" || settings["SERIALIZER"] != "" {
		d.Serialized = true
		d.kind = max(d.kind, otherData)
	}
	setsTime := func(setting, name string) bool {
		value, ok := settings[setting]
		return ok && truth(value) || !ok && v.Name() == name && (d.kind == timeData || d.kind == intData || d.kind == uintData)
	}
	d.AutoTime = setsTime("AUTOCREATETIME", "CreatedAt") || setsTime("AUTOUPDATETIME", "UpdatedAt")
	if settings["TYPE"] != "" && d.kind == noData {
		d.kind = otherData
	}
	return d
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
