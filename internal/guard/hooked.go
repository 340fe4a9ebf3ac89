package guard

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/statement"
)

// heldByCaller is the version that a struct held before the hooks of the statement. A hook that reads the row into the struct, or
// sets its version, does not make fresh what the caller read before. If a hook wrote the struct, it is the version that this gave.
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

// rememberNamed keeps the version that the caller names in what is updated. A hook may name another one there.
func (p *plan) rememberNamed(stmt *gorm.Statement) {
	if values, is := stmt.Dest.(map[string]any); p.version.is() && is && !p.hasHooks(stmt) {
		p.given.length = len(values) // it costs less, and shows what a callback adds
	} else if p.version.is() {
		p.given.version, _ = p.inDestination(stmt) // whose error comes again
	}
}

// named is what the caller names in what is updated, before hooks.
type named struct {
	version *column.Value
	length  int // of a map, in place of it
}

// isNamedByCaller reports whether the version that is named after the hooks was so before.
func (p *plan) isNamedByCaller(stmt *gorm.Statement, now *column.Value) bool {
	if values, is := stmt.Dest.(map[string]any); is && !p.hasHooks(stmt) {
		return now == nil || len(values) == p.given.length
	}
	had := p.given.version
	return (had == nil) == (now == nil) && (had == nil || had.Equal(*now))
}

// hasHooks reports whether hooks of the model run before updates or deletes.
func (p *plan) hasHooks(stmt *gorm.Statement) bool {
	s := p.model.Schema
	return !stmt.SkipHooks && (s.BeforeSave || s.BeforeUpdate || s.BeforeDelete)
}

// rekeyed returns the error of a struct to which a hook gave another key: the write would be one of another row, at the version of the
// first one.
func (p *plan) rekeyed(stmt *gorm.Statement) error {
	if !p.hasHooks(stmt) {
		return nil
	}
	for i := range p.memory.Count {
		was := p.memory.Was(i)
		if !was.IsValid() {
			continue
		}
		before, _ := statement.KeyOf(stmt, p.model.Schema, was)
		after, _ := statement.KeyOf(stmt, p.model.Schema, p.memory.Row(i))
		if before != nil && (after == nil || statement.KeyName(before) != statement.KeyName(after)) {
			return fmt.Errorf("gormlock: %s: a hook gave the struct another key, so another row would be written: leave the key as it is in the hook", p.rowName(stmt, before))
		}
	}
	return nil
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
