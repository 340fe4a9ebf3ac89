package form

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// If nothing is left of an update, GORM sends no statement and returns no error. Then nothing happens, and a stale struct is not noticed.

// NothingLeft returns the error of an update whose values are all left out by Select and Omit, or that has a value without a column in the model.
// An update without values, such as an empty map, is not an error.
func (w Write) NothingLeft() error {
	stmt := w.Stmt
	if _, ownSet := stmt.Clauses["SET"]; ownSet || stmt.Dest == nil {
		return nil
	}
	all := len(stmt.Selects)+len(stmt.Omits) == 0
	if statement.FromMap(stmt.Dest) {
		if maps := statement.MapsIn(stmt.Dest); !all && len(maps) > 0 {
			return w.nothingOfMap(maps[0])
		}
		return nil
	}
	given := reflect.ValueOf(stmt.Dest)
	for given.Kind() == reflect.Pointer {
		given = given.Elem()
	}
	if given.Kind() != reflect.Struct {
		return nil
	}
	isForm := given.Type() != w.Model.Schema.ModelType
	if !isForm && (all && statement.SamePointer(stmt.Model, stmt.Dest) || slices.Equal(stmt.Selects, []string{"*"}) && len(stmt.Omits) == 0) {
		return nil
	}
	v, are := w.valuesIn(given)
	switch {
	case !are:
		return nil
	case isForm:
		return cmp.Or(v.hidden(given), v.misfit(), v.barred(), v.nothing())
	default:
		return cmp.Or(v.nothing(), v.onlyBarred())
	}
}

func (w Write) nothingOfMap(given map[string]any) error {
	chosen := statement.ChosenFor(w.Stmt, false)
	some, compared := "", false
	for name := range given {
		field := w.Model.Schema.LookUpField(name)
		if field != nil && w.isGuards(field) {
			compared = compared || len(w.Stmt.Selects) > 0 && chosen.Has(field.DBName)
			continue
		}
		if field != nil && field.DBName != "" {
			name = field.DBName
		} else if field != nil {
			name = field.Name
		}
		if chosen.Has(name) {
			return nil
		}
		if some == "" || name < some {
			some = name
		}
	}
	if some == "" && compared {
		return nil
	}
	return w.errNothing(some)
}

// nothing returns the error of a struct none of whose values is written. A Save asks for all of them, other updates for those that are not zero.
func (v *values) nothing() error {
	stmt := v.Stmt
	if len(stmt.Selects)+len(stmt.Omits) == 0 {
		return nil
	}
	same := statement.SamePointer(stmt.Model, stmt.Dest)
	save := same && statement.InSave()
	if same && v.saveAssociation() {
		return nil
	}
	some := ""
	for _, name := range v.Model.Schema.DBNames {
		field := v.schema.LookUpField(name)
		if field == nil {
			continue
		}
		is := v.Names(field.DBName)
		if own := v.isGuards(v.Model.Schema.FieldsByDBName[name]); own && is && same && !save {
			return nil // the version is compared
		} else if own || !field.Updatable || field.PrimaryKey && (same || !v.differ(v.Model.Schema.FieldsByDBName[name], field)) {
			continue // a key that stays as it is: GORM only writes it if the struct comes by value
		}
		_, zero := field.ValueOf(stmt.Context, v.given)
		switch {
		case is, v.Has(field.DBName) && !zero && (field.AutoUpdateTime == 0 || stmt.SkipHooks):
			return nil
		case some == "" && field.AutoUpdateTime == 0 && (save || !zero):
			some = field.Name
		}
	}
	return v.errNothing(some)
}

// misfit returns the error of a value in a form for which the model has no column.
func (v *values) misfit() error {
	fits := map[*schema.Field]bool{}
	for _, name := range v.Model.Schema.DBNames {
		fits[v.schema.LookUpField(name)] = true
	}
	for _, field := range v.schema.Fields {
		if field.DBName == "" || v.schema.FieldsByDBName[field.DBName] != field || fits[field] || !field.Updatable ||
			!v.Has(field.DBName) || slices.Contains(v.Stmt.Omits, field.Name) {
			continue
		}
		if _, zero := field.ValueOf(v.Stmt.Context, v.given); !zero {
			return fmt.Errorf("gormlock: %s: %s.%s fits no column of %s, so GORM would leave it out: give it the name of a column, or the tag `gorm:\"-\"`",
				v.Model.Schema.Name, v.schema.Name, field.Name, statement.TableName(v.Stmt))
		}
	}
	return nil
}

// hidden returns the error of values in a struct that GORM does not look into, because its type is not exported.
func (v *values) hidden(given reflect.Value) error {
	t := given.Type()
	for i := range t.NumField() {
		inner := reflect.Indirect(given.Field(i))
		if field := t.Field(i); !field.Anonymous || inner.Kind() != reflect.Struct || inner.IsZero() || isIgnored(field) {
			continue
		} else if !field.IsExported() && slices.ContainsFunc(reflect.VisibleFields(inner.Type()), reflect.StructField.IsExported) {
			return fmt.Errorf("gormlock: %s: GORM does not look into %s.%s, whose type is not exported, so it would leave its values out: export the type, or name the fields in the form itself",
				v.Model.Schema.Name, t.Name(), field.Name)
		}
		if err := v.hidden(inner); err != nil {
			return err
		}
	}
	return nil
}

// isIgnored reports whether a tag tells GORM to leave the field out.
func isIgnored(field reflect.StructField) bool {
	_, is := schema.ParseTagSetting(field.Tag.Get("gorm"), ";")["-"]
	return is
}

// differ reports whether a field has a value, and one that differs from an updated struct's.
func (v *values) differ(field, from *schema.Field) bool {
	value, zero := from.ValueOf(v.Stmt.Context, v.given)
	if zero {
		return false
	}
	for i := range v.Structs.Count {
		row := v.Structs.Row(i)
		held, _ := field.ValueOf(v.Stmt.Context, row)
		if !statement.Holds(v.Stmt.Context, field, row, value) && !statement.SameValue(held, value, time.Nanosecond) {
			return true
		}
	}
	return v.Structs.Count == 0
}

// saveAssociation reports whether Select names an association, which is saved in addition to the columns.
func (v *values) saveAssociation() bool {
	return slices.ContainsFunc(v.Stmt.Selects, func(name string) bool { return statement.NamesAssociation(v.Model.Schema, name) })
}

func (w Write) errNothing(left string) error {
	if left == "" {
		return nil
	}
	return fmt.Errorf("gormlock: update %s: Select and Omit leave nothing to write of what is asked for (%s): name it in Select, or leave the update out",
		statement.TableName(w.Stmt), left)
}
