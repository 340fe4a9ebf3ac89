package guard

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/children"
	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/model"
)

// heldByCaller is the version that a struct held before the hooks of the statement. If a hook reads the row into the struct, or sets its version,
// the data that the caller read before is still old. If a hook wrote the struct, it is the version that this write gave.
func (p *plan) heldByCaller(stmt *gorm.Statement, i int) column.Value {
	row := &p.rows[i]
	held := p.version.Read(row.Struct)
	was := p.memory.Was(i)
	if !was.IsValid() || p.version.Read(was).Equal(held) {
		return held
	}
	before := p.version.Read(was)
	name := p.named(stmt, row).name
	if hasWrite(stmt, p.model, func(w *Write) bool { return w.moved(stmt, name, before, held) }) {
		return held
	}
	return before
}

// rememberNamed keeps the version that the caller names in what is updated. A hook or a callback may later name another one there.
func (p *plan) rememberNamed(stmt *gorm.Statement) {
	if p.version.is() {
		p.given, _ = p.inDestination(stmt) // its error comes again
	}
}

// isNamedByCaller reports whether the version that is named after the hooks was named before them.
func (p *plan) isNamedByCaller(now *column.Value) bool {
	return (p.given == nil) == (now == nil) && (now == nil || p.given.Equal(*now))
}

// hasHooks reports whether hooks of the model run before updates or deletes.
func (p *plan) hasHooks(stmt *gorm.Statement) bool {
	s := p.model.Schema
	return !stmt.SkipHooks && (s.BeforeSave || s.BeforeUpdate || s.BeforeDelete)
}

// rekeyed returns the error of a struct whose key was changed by a hook or by its belongs-to: the write would be of another row, at the version of
// the first one.
func (p *plan) rekeyed(stmt *gorm.Statement) error {
	if !p.hasHooks(stmt) && !p.model.KeyLinked {
		return nil
	}
	for i := range p.memory.Count {
		if err := p.rekeyedAt(stmt, i); err != nil {
			return err
		}
	}
	return nil
}

// rekeyedAt does the same for one struct.
func (p *plan) rekeyedAt(stmt *gorm.Statement, i int) error {
	was := p.memory.Was(i)
	if !was.IsValid() || stmt.DryRun {
		return nil
	}
	fields := p.model.Schema.PrimaryFields
	return Rekeyed(stmt, p.model, children.KeyOf(p.model, was, valuesIn(stmt, fields, was)).Hooked(), valuesIn(stmt, fields, p.memory.Row(i)))
}

// Rekeyed returns the error of a struct that gets another key, so that another row would be written. A new struct may get a part of its key that was
// zero. A struct that was read may not: zero is a value of a key like any other.
func Rekeyed(stmt *gorm.Statement, m *model.Model, one children.Rekeyed, after []any) error {
	one = one.To(stmt, after)
	became, err := children.Becomes(stmt.DB, m.Schema, one)
	if err != nil || became < 0 {
		return err
	}
	return fmt.Errorf("gormlock: %s: a hook, or what it belongs to, gave the struct another key, so another row would be written: leave its key as it is, or delete this row and create the other. "+
		"If the struct is a new one, set all parts of its key", rowName(stmt, m.Schema, one.Before()))
}

// moved reports whether the write moved a struct of this key from one version to another.
func (w *Write) moved(stmt *gorm.Statement, name string, from, to column.Value) bool {
	if w.outcome.none || !w.wrote(stmt, name) {
		return false
	}
	for i := range w.memory.Count {
		was, is := w.memory.Was(i), w.memory.Of(w.memory.After, i)
		if was.IsValid() && is.IsValid() && w.version.Read(was).Equal(from) && w.version.Read(is).Equal(to) {
			return true
		}
	}
	return false
}
