package shared

import (
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// pointer is a pointer that a struct has for a column, with its place. While an update is built, that place holds another pointer.
type pointer struct{ place, is, own reflect.Value }

// kept are the pointers of the structs of a statement.
type kept struct {
	stmt     *gorm.Statement
	pointers []pointer
}

const keptClause = "gormlock:shared"

// Build lets kept be one of a statement's clauses, where it is found again. It writes nothing.
func (*kept) Build(clause.Builder) {}

// Keep notes the pointers of the structs of a statement right before it is built. While an update is built, the structs have their own pointers to
// the same values, because GORM writes through them. A create sets the time of the update in this way too.
func Keep(db *gorm.DB, updates bool) {
	stmt, m := db.Statement, model.Of(db)
	if db.Error != nil || m == nil || !m.Pointers {
		return
	}
	k := &kept{stmt: stmt}
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if row.Type() != stmt.Schema.ModelType || !row.CanAddr() {
			return
		}
		for _, field := range m.Indirect {
			if place := statement.Place(field, row); isPointer(place) {
				p := pointer{place: place, is: statement.CopyOf(place)}
				if updates || field.AutoUpdateTime > 0 {
					own(place)
					p.own = statement.CopyOf(place)
				}
				k.pointers = append(k.pointers, p)
			}
		}
	})
	if len(k.pointers) > 0 {
		stmt.Clauses[keptClause] = clause.Clause{Expression: k}
	}
}

// Part ends the building of an update. A struct keeps its own pointer if another value was set.
func Part(db *gorm.DB) {
	k := keptOf(db.Statement)
	for i := len(k.pointers) - 1; i >= 0; i-- { // a struct may be there twice
		p := &k.pointers[i]
		if p.own.IsValid() && isAt(p.place, p.own) && equal(p.place.Elem(), p.is.Elem()) {
			p.place.Set(p.is)
		}
	}
	for i := range k.pointers {
		k.pointers[i].is = statement.CopyOf(k.pointers[i].place)
	}
}

// GiveBack restores the pointers that the structs had before the statement returned their rows, if the values are the same. So values that the
// program later writes through its pointers are stored.
func GiveBack(db *gorm.DB) {
	k := keptOf(db.Statement)
	for _, p := range k.pointers {
		if isPointer(p.place) && !p.is.IsNil() && !isAt(p.place, p.is) && equal(p.place.Elem(), p.is.Elem()) {
			p.place.Set(p.is)
		}
	}
	delete(db.Statement.Clauses, keptClause)
}

func keptOf(stmt *gorm.Statement) *kept {
	if k, _ := stmt.Clauses[keptClause].Expression.(*kept); k != nil && k.stmt == stmt {
		return k
	}
	return &kept{}
}

func isAt(place, pointer reflect.Value) bool {
	return isPointer(place) && place.Pointer() == pointer.Pointer()
}

func equal(a, b reflect.Value) bool {
	is, was := a.Interface(), b.Interface()
	if one, ok := is.(time.Time); ok {
		return one.Equal(was.(time.Time)) //nolint:forcetypeassert // of the same type
	}
	return reflect.DeepEqual(is, was)
}

// OwnKeys gives structs their own pointers for foreign keys that GORM is about to set: those of the statement's structs before their belongs-to is
// saved, and those of their children after the structs are written.
func OwnKeys(db *gorm.DB, written bool) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil {
		return
	}
	relations := stmt.Schema.Relationships.BelongsTo
	if written {
		relations = slices.Concat(stmt.Schema.Relationships.HasOne, stmt.Schema.Relationships.HasMany)
	}
	var isSaved func(*schema.Relationship) bool
	for _, relation := range relations {
		if !slices.ContainsFunc(relation.References, func(ref *schema.Reference) bool { return ref.ForeignKey.FieldType.Kind() == reflect.Pointer }) {
			continue
		}
		if isSaved == nil {
			isSaved = statement.Saving(stmt)
		}
		if !isSaved(relation) {
			continue
		}
		statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
			if place := statement.Place(relation.Field, row); place.IsValid() && row.Type() == stmt.Schema.ModelType {
				statement.EachStruct(place, func(other reflect.Value) {
					if written {
						ownKeysOf(stmt, relation, row, other)
					} else if !other.IsZero() {
						ownKeysOf(stmt, relation, other, row)
					}
				})
			}
		})
	}
}

// ownKeysOf does the same for the struct that refers to another one.
func ownKeysOf(stmt *gorm.Statement, relation *schema.Relationship, to, from reflect.Value) {
	for _, ref := range relation.References {
		place := statement.Place(ref.ForeignKey, from)
		if !isPointer(place) {
			continue
		}
		var given any = ref.PrimaryValue
		isNew := false // its key is not known yet
		if ref.PrimaryValue == "" {
			given, isNew = ref.PrimaryKey.ValueOf(stmt.Context, to)
		}
		if isNew || statement.KeyName([]any{given}) != statement.KeyName([]any{place.Interface()}) {
			own(place)
		}
	}
}

func isPointer(place reflect.Value) bool {
	return place.IsValid() && place.CanSet() && place.Kind() == reflect.Pointer && !place.IsNil()
}

// own puts a new pointer to the same value in a place.
func own(place reflect.Value) {
	pointer := reflect.New(place.Type().Elem())
	pointer.Elem().Set(place.Elem())
	place.Set(pointer)
}
