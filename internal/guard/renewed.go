package guard

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/statement"
)

// A column with the tag `unversioned,renewed` is written by others while a struct is in use, and they do not move the version. The struct would
// silently write back an old value. So it is only written if the caller names the column: by Select, in a map, or as a column of Update.

// leaveOutRenewed makes an update by a struct leave such columns as they are.
func (w *Write) leaveOutRenewed(stmt *gorm.Statement) error {
	if len(w.model.Renewed) == 0 || w.intent.Merges() {
		return nil
	}
	if _, own := stmt.Clauses["SET"]; own {
		return nil
	}
	if err := w.refuseAssigned(stmt); err != nil {
		return err
	}
	dest := reflect.Indirect(reflect.ValueOf(stmt.Dest))
	if !dest.IsValid() || dest.Type() != w.model.Schema.ModelType {
		return nil
	}
	for _, field := range w.model.Renewed {
		if namesField(stmt, field) || slices.Contains(stmt.Omits, field.Name) || slices.Contains(stmt.Omits, field.DBName) {
			continue
		}
		if !mayBeSave(stmt) && !holdsSame(stmt, field, dest) {
			return w.renewedError(field)
		}
		stmt.Omits = append(slices.Clip(stmt.Omits), field.DBName)
		w.where.leftOut++
	}
	return nil
}

// refuseJob refuses a write that would take a job from its worker.
func (w *Write) refuseJob(stmt *gorm.Statement) error {
	if len(w.model.Renewed) == 0 || install.RefuseJob == nil {
		return nil
	}
	return install.RefuseJob(stmt)
}

// refuseAssigned refuses a struct of Assign that has a value in such a column: FirstOrCreate turns it into a map, which would name the column.
func (w *Write) refuseAssigned(stmt *gorm.Statement) error {
	values, isMap := stmt.Dest.(map[string]any)
	if !isMap || !statement.IsAssigned(stmt, w.model.Schema.ModelType) || !statement.InFirstOrCreate() {
		return nil
	}
	for _, field := range w.model.Renewed {
		if _, is := values[field.DBName]; is && !namesField(stmt, field) && !slices.Contains(w.omitted(stmt), field.Name) && !slices.Contains(w.omitted(stmt), field.DBName) {
			return w.renewedError(field)
		}
	}
	return nil
}

func (w *Write) renewedError(field *schema.Field) error {
	return renewedError(fmt.Sprintf("gormlock: %s.%s is renewed by others, and a struct does not write it: leave it out, or name it in Select, Update or a map", w.model.Schema.Name, field.Name))
}

// renewedError is an ErrOption with a text of its own, because the text of ErrOption is about locks.
type renewedError string

func (e renewedError) Error() string { return string(e) }

// Is makes it an ErrOption.
func (renewedError) Is(target error) bool { return target == fault.ErrOption }

// omitAsBefore restores the caller's Omit, because the caller may use the statement again.
func (w *Write) omitAsBefore(stmt *gorm.Statement) {
	stmt.Omits = w.omitted(stmt)
	w.where.leftOut = 0
}

// omitted is what the caller omits.
func (p *plan) omitted(stmt *gorm.Statement) []string {
	return stmt.Omits[:len(stmt.Omits)-p.where.leftOut]
}

// namesField reports whether Select names the field itself.
func namesField(stmt *gorm.Statement, field *schema.Field) bool {
	return slices.ContainsFunc(stmt.Selects, func(name string) bool {
		return stmt.Schema.LookUpField(name) == field || name == stmt.Table+"."+field.DBName
	})
}

// holdsSame reports whether dest has no value in the field, or the same value as the struct of Model.
func holdsSame(stmt *gorm.Statement, field *schema.Field, dest reflect.Value) bool {
	value, unset := field.ValueOf(stmt.Context, dest)
	if unset || statement.SamePointer(stmt.Model, stmt.Dest) {
		return true
	}
	model := reflect.Indirect(reflect.ValueOf(stmt.Model))
	if !model.IsValid() || model.Type() != dest.Type() {
		return false
	}
	held, _ := field.ValueOf(stmt.Context, model)
	return statement.SameValue(value, held, time.Nanosecond)
}

// withoutRenewed removes such columns from an upsert of all columns.
func (d *draft) withoutRenewed(set clause.Set) clause.Set {
	return slices.DeleteFunc(slices.Clone(set), func(a clause.Assignment) bool {
		return slices.ContainsFunc(d.model.Renewed, func(f *schema.Field) bool { return f.DBName == a.Column.Name })
	})
}
