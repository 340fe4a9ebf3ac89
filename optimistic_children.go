package gormlock

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
)

const movedSetting = "gormlock:moved"

// noticeMoved keeps which children come from another parent, before GORM gives them the key of this one.
func noticeMoved(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil || db.DryRun {
		return
	}
	m := versionedModelOf(db)
	if m == nil || !m.children {
		return
	}
	moved := map[uintptr]struct{}{}
	eachStruct(stmt.ReflectValue, func(parent reflect.Value) {
		for _, relation := range slices.Concat(stmt.Schema.Relationships.HasOne, stmt.Schema.Relationships.HasMany) {
			if !hasVersionTag(relation.FieldSchema) {
				continue
			}
			place := placeOf(relation.Field, parent)
			if !place.IsValid() {
				continue
			}
			eachStruct(place, func(child reflect.Value) {
				for _, ref := range relation.References {
					if !ref.OwnPrimaryKey || !child.CanAddr() {
						continue
					}
					owner, _ := ref.PrimaryKey.ValueOf(stmt.Context, parent)
					link, _ := ref.ForeignKey.ValueOf(stmt.Context, child)
					if keyName([]any{owner}) != keyName([]any{link}) {
						moved[child.Addr().Pointer()] = struct{}{}
					}
				}
			})
		}
	})
	if len(moved) > 0 {
		stmt.Settings.Store(movedSetting, moved)
	} else {
		stmt.Settings.Delete(movedSetting)
	}
}

func movedHere(stmt *gorm.Statement, row reflect.Value) bool {
	value, _ := stmt.Settings.Load(movedSetting)
	moved, _ := value.(map[uintptr]struct{})
	if !row.CanAddr() {
		return false
	}
	_, ok := moved[row.Addr().Pointer()]
	return ok
}

// eachStruct visits the structs that value is or holds.
func eachStruct(value reflect.Value, visit func(reflect.Value)) {
	for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	switch value.Kind() {
	case reflect.Struct:
		visit(value)
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			eachStruct(value.Index(i), visit)
		}
	}
}
