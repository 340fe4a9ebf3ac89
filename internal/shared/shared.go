package shared

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// pointer is a pointer that a struct has for a column, what it points to, and what that was.
type pointer struct{ place, to, was reflect.Value }

// kept are the pointers of the structs of a statement, before GORM writes into them.
type kept struct {
	stmt     *gorm.Statement
	pointers []pointer
}

const keptClause = "gormlock:shared"

// Build makes kept fit into a statement's clauses, where it is found again. It writes nothing.
func (*kept) Build(clause.Builder) {}

// Keep notes what is behind the pointers of the structs of a statement. The hooks before it have run: what they write through a pointer
// is what the program wants.
func Keep(db *gorm.DB) {
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
				k.pointers = append(k.pointers, pointer{place, place.Elem(), copyOf(place.Elem())})
			}
		}
	})
	if len(k.pointers) > 0 {
		stmt.Clauses[keptClause] = clause.Clause{Expression: k}
	}
}

// Part gives a struct a pointer of its own where GORM has written another value through the one that it had, and puts back what was
// behind that.
func Part(db *gorm.DB) {
	k, _ := db.Statement.Clauses[keptClause].Expression.(*kept)
	if k == nil || k.stmt != db.Statement {
		return
	}
	delete(db.Statement.Clauses, keptClause)
	for _, p := range k.pointers {
		if !isPointer(p.place) || p.place.Pointer() != p.to.Addr().Pointer() || reflect.DeepEqual(p.to.Interface(), p.was.Interface()) {
			continue
		}
		own(p.place)
		p.to.Set(p.was)
	}
}

// OwnKeys gives the structs that GORM is about to link pointers of their own for their foreign keys, where these will get another value:
// those of the statement to what they belong to, before that is saved; and their children to them, once they are written.
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
			isSaved = saving(stmt)
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

// saving tells which associations GORM saves with the statement.
func saving(stmt *gorm.Statement) func(*schema.Relationship) bool {
	creates := slices.Contains(stmt.BuildClauses, "VALUES")
	selected, restricted := stmt.SelectAndOmitColumns(creates, !creates)
	return func(relation *schema.Relationship) bool {
		is, said := selected[relation.Name]
		return is || !said && !restricted
	}
}

// ownKeysOf does so for the struct that refers to another one.
func ownKeysOf(stmt *gorm.Statement, relation *schema.Relationship, to, from reflect.Value) {
	for _, ref := range relation.References {
		place := statement.Place(ref.ForeignKey, from)
		if !isPointer(place) {
			continue
		}
		var given any = ref.PrimaryValue
		if ref.PrimaryValue == "" {
			given, _ = ref.PrimaryKey.ValueOf(stmt.Context, to)
		}
		if statement.KeyName([]any{given}) != statement.KeyName([]any{place.Interface()}) {
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

func copyOf(value reflect.Value) reflect.Value {
	held := reflect.New(value.Type()).Elem()
	held.Set(value)
	return held
}
