// Package form looks at a write as its caller gave it to GORM: at the values of an update, which are a struct or a map, and at what Select and Omit
// name. GORM silently leaves out what it does not know, or may not write. Here that is an error.
package form

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Write is a write as its caller gave it to GORM.
type Write struct {
	Model   *model.Model
	Structs *memory.Structs // the structs to write
	Stmt    *gorm.Statement
}

// values are the struct from which an update takes its values. It can differ from the updated one: then GORM writes its columns, and leaves out its
// associations.
type values struct {
	Write
	statement.Chosen
	schema *schema.Schema
	given  reflect.Value
}

// valuesIn returns the values in a struct. are is false if GORM cannot parse its type, because then it finds no columns and associations in it.
func (w Write) valuesIn(given reflect.Value) (v values, are bool) {
	v = values{Write: w, schema: w.Model.Schema, given: given}
	if given.Type() != w.Model.Schema.ModelType {
		parsed := &gorm.Statement{DB: w.Stmt.DB}
		if err := parsed.Parse(w.Stmt.Dest); err != nil {
			return v, false
		}
		v.schema = parsed.Schema
	}
	v.Chosen = statement.ChosenFor(w.Stmt, false)
	return v, true
}

// isGuards reports whether a guard writes the field.
func (w Write) isGuards(field *schema.Field) bool {
	return w.Model.Column != nil && field == w.Model.Column.Field || w.Model.Fence != nil && field == w.Model.Fence.Field
}

// isSelected reports whether the caller's Select, if there is one, names the column.
func (w Write) isSelected(name string) bool {
	s := w.Model.Schema
	return len(w.Stmt.Selects) == 0 || slices.ContainsFunc(w.Stmt.Selects, func(selected string) bool {
		return selected == "*" || s.LookUpField(selected) == s.LookUpField(name)
	})
}

// isOmitted reports whether the caller leaves the column out.
func (w Write) isOmitted(field *schema.Field) bool {
	return slices.ContainsFunc(w.Stmt.Omits, func(name string) bool { return w.Model.Schema.LookUpField(name) == field })
}
