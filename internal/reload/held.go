package reload

import (
	"reflect"
	"slices"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// heldRow is what a struct held in the fields that a read may change.
type heldRow struct {
	schema         *schema.Schema
	row, was       reflect.Value
	places, values []reflect.Value // of fields behind pointers
}

// holdRow empties the columns of a struct, for GORM leaves alone what it reads NULL for, and keeps what they held, and its
// associations. What a query computes stays: it is in no table.
func holdRow(s *schema.Schema, row reflect.Value) *heldRow {
	h := &heldRow{schema: s, row: row, was: copyOf(row)}
	h.each(func(field *schema.Field) {
		if !isInside(field) {
			h.hold(field)
		}
	})
	for _, field := range s.FieldsByDBName {
		if place := statement.Place(field, row); place.IsValid() && field.Readable && !statement.IsComputed(field) {
			place.SetZero()
		}
	}
	return h
}

// each visits the fields that a read may change.
func (h *heldRow) each(visit func(*schema.Field)) {
	for _, field := range h.schema.FieldsByDBName {
		visit(field)
	}
	for _, relation := range statement.OwnRelations(h.schema) {
		visit(relation.Field)
	}
}

// isInside reports whether a field is in the struct itself, and not behind a pointer.
func isInside(field *schema.Field) bool {
	return !slices.ContainsFunc(field.StructField.Index, func(i int) bool { return i < 0 })
}

// hold keeps what a field behind a pointer holds, or that an embedded struct on the way to it is nil.
func (h *heldRow) hold(field *schema.Field) {
	kept := statement.Place(field, h.row)
	for end := len(field.StructField.Index) - 1; !kept.IsValid(); end-- {
		embedded := *field
		embedded.StructField.Index = field.StructField.Index[:end]
		kept = statement.Place(&embedded, h.row)
	}
	h.places, h.values = append(h.places, kept), append(h.values, copyOf(kept))
}

func copyOf(value reflect.Value) reflect.Value {
	kept := reflect.New(value.Type()).Elem()
	kept.Set(value)
	return kept
}

func (h *heldRow) putBack() {
	h.each(func(field *schema.Field) {
		if isInside(field) {
			statement.Place(field, h.row).Set(statement.Place(field, h.was))
		}
	})
	for i, place := range h.places {
		place.Set(h.values[i])
	}
}
