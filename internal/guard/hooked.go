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
	if p.version.is() {
		p.versionNamed, _ = p.inDestination(stmt) // whose error comes again
	}
}

// rekeyed returns the error of a struct to which a hook gave another key: the write would be one of another row, at the version of the
// first one.
func (p *plan) rekeyed(stmt *gorm.Statement) error {
	if s := p.model.Schema; stmt.SkipHooks || !s.BeforeSave && !s.BeforeUpdate && !s.BeforeDelete {
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
