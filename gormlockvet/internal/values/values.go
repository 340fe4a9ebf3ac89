// Package values reads what the compiler knows of one value: the text it is, the parts it is made of, the field it is.
package values

import (
	"go/constant"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// Bare returns a value without the conversions around it.
func Bare(v ssa.Value) ssa.Value {
	for {
		switch converted := v.(type) {
		case *ssa.MakeInterface:
			v = converted.X
		case *ssa.ChangeType:
			v = converted.X
		case *ssa.ChangeInterface:
			v = converted.X
		default:
			return v
		}
	}
}

// Variadic returns the elements of the slice that the compiler made of the last arguments, and whether it is one.
func Variadic(v ssa.Value) ([]ssa.Value, bool) {
	if Nil(v) {
		return nil, true
	}
	slice, ok := v.(*ssa.Slice)
	if !ok {
		return nil, false
	}
	array, ok := slice.X.(*ssa.Alloc)
	if !ok {
		return nil, false
	}
	var elements []ssa.Value
	for _, use := range *array.Referrers() {
		index, ok := use.(*ssa.IndexAddr)
		if !ok {
			continue
		}
		for _, use := range *index.Referrers() {
			if store, ok := use.(*ssa.Store); ok && store.Addr == index {
				elements = append(elements, store.Val)
			}
		}
	}
	return elements, true
}

// Parts returns the elements of a variadic argument, or the argument itself.
func Parts(arg ssa.Value) []ssa.Value {
	if parts, ok := Variadic(arg); ok && len(parts) > 0 {
		return parts
	}
	return []ssa.Value{arg}
}

// Nil reports whether a value is the constant nil.
func Nil(v ssa.Value) bool {
	constant, ok := v.(*ssa.Const)
	return ok && constant.IsNil()
}

// String returns a text that the compiler knows.
func String(v ssa.Value) (string, bool) {
	known, ok := Bare(v).(*ssa.Const)
	if !ok || known.Value == nil || known.Value.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(known.Value), true
}

// True reports whether the compiler knows that a value is true.
func True(v ssa.Value) bool {
	constant, ok := v.(*ssa.Const)
	return ok && constant.Value != nil && constant.Value.String() == "true"
}

// Map returns the keys of a map literal, if the compiler knows them, with their values.
func Map(v ssa.Value) (keys map[string]ssa.Value, ok bool) {
	made, isMap := Bare(v).(*ssa.MakeMap)
	if !isMap {
		return nil, false
	}
	keys = map[string]ssa.Value{}
	for _, use := range *made.Referrers() {
		if update, isUpdate := use.(*ssa.MapUpdate); isUpdate {
			key, known := String(update.Key)
			if !known {
				return nil, false
			}
			keys[key] = update.Value
		}
	}
	return keys, true
}

// Field returns the name of the field that an address is of.
func Field(at *ssa.FieldAddr) string { return FieldOf(at.X.Type(), at.Field) }

// FieldOf returns the name of a field of a struct, or of what points to one.
func FieldOf(t types.Type, i int) string {
	t = t.Underlying()
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem().Underlying()
	}
	if s, ok := t.(*types.Struct); ok && i < s.NumFields() {
		return s.Field(i).Name()
	}
	return "?"
}
