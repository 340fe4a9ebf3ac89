package guard

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// GORM sends no statement for an update of which nothing is left, and returns no error: what was asked for does not happen, and a
// stale struct is not noticed.

// nothingLeft returns the error of an update that asks for values, of which Select and Omit leave none, or that the model has no column
// for. An update that asks for nothing, as that of an empty map, is none.
func (p *plan) nothingLeft(stmt *gorm.Statement) error {
	if _, ownSet := stmt.Clauses["SET"]; ownSet || p.intent.Touches() || stmt.Dest == nil {
		return nil
	}
	all := len(stmt.Selects)+len(stmt.Omits) == 0
	if statement.FromMap(stmt.Dest) {
		if maps := statement.MapsIn(stmt.Dest); !all && len(maps) > 0 {
			return p.nothingOfMap(stmt, maps[0])
		}
		return nil
	}
	values := reflect.ValueOf(stmt.Dest)
	for values.Kind() == reflect.Pointer {
		values = values.Elem()
	}
	if values.Kind() != reflect.Struct {
		return nil
	}
	isForm := values.Type() != p.model.Schema.ModelType
	if !isForm && (all && statement.SamePointer(stmt.Model, stmt.Dest) || slices.Equal(stmt.Selects, []string{"*"}) && len(stmt.Omits) == 0) {
		return nil
	}
	s := p.schemaOf(stmt, values)
	if s == nil {
		return nil
	}
	f := form{plan: p, stmt: stmt, values: values}
	f.selected, f.restricted = stmt.SelectAndOmitColumns(false, true)
	if !isForm {
		return cmp.Or(f.nothingOf(s), f.onlyBarred(s))
	}
	return cmp.Or(f.hides(values), f.misfits(s), f.bars(s), f.nothingOf(s))
}

func (p *plan) nothingOfMap(stmt *gorm.Statement, values map[string]any) error {
	f := form{plan: p, stmt: stmt}
	f.selected, f.restricted = stmt.SelectAndOmitColumns(false, true)
	some, compared := "", false
	for name := range values {
		field := p.model.Schema.LookUpField(name)
		if field != nil && p.isGuards(field) {
			compared = compared || len(stmt.Selects) > 0 && f.asks(field.DBName)
			continue
		}
		if field != nil && field.DBName != "" {
			name = field.DBName
		} else if field != nil {
			name = field.Name
		}
		if f.asks(name) {
			return nil
		}
		if some == "" || name < some {
			some = name
		}
	}
	if some == "" && compared {
		return nil
	}
	return p.errNothing(stmt, some)
}

// nothingOf returns the error of a struct of whose values none is written. A Save asks for all of them, other updates for those that are
// not zero.
func (f *form) nothingOf(s *schema.Schema) error {
	p, stmt := f.plan, f.stmt
	if len(stmt.Selects)+len(stmt.Omits) == 0 {
		return nil
	}
	same := statement.SamePointer(stmt.Model, stmt.Dest)
	save := same && statement.InSave()
	if same && p.savesAssociation(stmt) {
		return nil
	}
	some := ""
	for _, name := range p.model.Schema.DBNames {
		field := s.LookUpField(name)
		if field == nil {
			continue
		}
		is, named := f.selected[field.DBName]
		if own := p.isGuards(p.model.Schema.FieldsByDBName[name]); own && is && same && !save {
			return nil // it is compared
		} else if own || !field.Updatable || same && field.PrimaryKey {
			continue
		}
		_, zero := field.ValueOf(stmt.Context, f.values)
		switch {
		case is, !named && !f.restricted && !zero && (field.AutoUpdateTime == 0 || stmt.SkipHooks):
			return nil
		case some == "" && field.AutoUpdateTime == 0 && (save || !zero):
			some = field.Name
		}
	}
	return p.errNothing(stmt, some)
}

// misfits returns the error of a value in a form for which the model has no column.
func (f *form) misfits(s *schema.Schema) error {
	fits := map[*schema.Field]bool{}
	for _, name := range f.plan.model.Schema.DBNames {
		fits[s.LookUpField(name)] = true
	}
	all := slices.Contains(f.stmt.Selects, "*")
	for _, field := range s.Fields {
		if _, named := f.selected[field.DBName]; all && !named && !slices.Contains(f.stmt.Omits, field.Name) && !slices.Contains(f.stmt.Omits, field.DBName) {
			f.selected[field.DBName] = true
		}
		if field.DBName == "" || s.FieldsByDBName[field.DBName] != field || fits[field] || !field.Updatable || !f.asks(field.DBName) {
			continue
		}
		if _, zero := field.ValueOf(f.stmt.Context, f.values); !zero {
			return fmt.Errorf("gormlock: %s: %s.%s fits no column of %s, so GORM would leave it out: give it the name of a column, or the tag `gorm:\"-\"`",
				f.plan.model.Schema.Name, s.Name, field.Name, statement.TableName(f.stmt))
		}
	}
	return nil
}

// hides returns the error of values in a struct that GORM does not look into, because its type is not exported.
func (f *form) hides(values reflect.Value) error {
	t := values.Type()
	for i := range t.NumField() {
		inner := reflect.Indirect(values.Field(i))
		if field := t.Field(i); !field.Anonymous || inner.Kind() != reflect.Struct || inner.IsZero() || isIgnored(field) {
			continue
		} else if !field.IsExported() && slices.ContainsFunc(reflect.VisibleFields(inner.Type()), reflect.StructField.IsExported) {
			return fmt.Errorf("gormlock: %s: GORM does not look into %s.%s, whose type is not exported, so it would leave its values out: export the type, or name the fields in the form itself",
				f.plan.model.Schema.Name, t.Name(), field.Name)
		}
		if err := f.hides(inner); err != nil {
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

// bars returns the error of a value in a form that the tag of the model's field keeps out of updates, if it is another than the struct
// has.
func (f *form) bars(s *schema.Schema) error {
	p := f.plan
	for _, field := range p.model.Schema.Fields {
		from := s.LookUpField(field.DBName)
		if field.DBName == "" || field.Updatable || field.PrimaryKey || p.isGuards(field) || from == nil || !from.Updatable {
			continue
		}
		if p.isOmitted(f.stmt, field) || !p.isSelected(f.stmt, field.Name) || !f.differs(field, from) {
			continue
		}
		return fmt.Errorf("gormlock: %s.%s: its tag keeps it out of updates, so GORM leaves out what the form has for it: Omit(%q), or change a tag",
			p.model.Schema.Name, field.Name, field.Name)
	}
	return nil
}

// onlyBarred returns the error of a struct that has values, and none that an update writes.
func (f *form) onlyBarred(s *schema.Schema) error {
	if len(f.stmt.Selects)+len(f.stmt.Omits) > 0 {
		return nil // which name what is written
	}
	some := ""
	for _, field := range s.Fields {
		switch _, zero := field.ValueOf(f.stmt.Context, f.values); {
		case field.DBName == "" || zero || f.plan.isGuards(field) || field.PrimaryKey:
		case field.Updatable:
			return nil
		case f.differs(field, field):
			some = field.Name
		}
	}
	if some == "" {
		return nil
	}
	return fmt.Errorf("gormlock: %s.%s: its tag keeps it out of updates, and there is nothing else to write: change the tag, or leave the update out",
		f.plan.model.Schema.Name, some)
}

// differs reports whether the form has a value for a field, and another than one of the updated structs.
func (f *form) differs(field, from *schema.Field) bool {
	value, zero := from.ValueOf(f.stmt.Context, f.values)
	if zero {
		return false
	}
	for i := range f.plan.memory.Count {
		row := f.plan.memory.Row(i)
		held, _ := field.ValueOf(f.stmt.Context, row)
		if !statement.Holds(f.stmt.Context, field, row, value) && !statement.SameValue(held, value, time.Nanosecond) {
			return true
		}
	}
	return f.plan.memory.Count == 0
}

// savesAssociation reports whether Select names one, which is saved beside the columns.
func (p *plan) savesAssociation(stmt *gorm.Statement) bool {
	return slices.ContainsFunc(stmt.Selects, func(name string) bool { return statement.NamesAssociation(p.model.Schema, name) })
}

// isGuards reports whether a guard writes the field.
func (p *plan) isGuards(field *schema.Field) bool {
	return p.version.is() && field == p.version.Field || p.model.Fence != nil && field == p.model.Fence.Field
}

func (p *plan) errNothing(stmt *gorm.Statement, left string) error {
	if left == "" {
		return nil
	}
	return fmt.Errorf("gormlock: update %s: Select and Omit leave nothing to write of what is asked for (%s): name it in Select, or leave the update out",
		statement.TableName(stmt), left)
}
