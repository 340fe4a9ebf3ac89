package guard

import (
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// Moved reports whether the transaction of the statement has moved the version of the row with this key, or created the row, and has not deleted it
// since.
func Moved(stmt *gorm.Statement, m *model.Model, key []any) (moved bool) {
	name := statement.KeyName(key)
	hasWrite(stmt, m, func(w *Write) bool {
		switch {
		case w.outcome.none:
		case w.op == OpDelete || w.built.hides:
			moved = moved && !w.isBulk() && !w.wrote(stmt, name)
		case w.op == OpCreate && !w.upsert.skips, w.built.bumps && !w.batch:
			moved = moved || w.wrote(stmt, name)
		default:
			moved = moved || w.left(stmt, name, differ)
		}
		return false // the last write decides
	})
	return moved
}

// Adopt gives a struct its row's new version. A rollback undoes that.
func Adopt(stmt *gorm.Statement, m *model.Model, row reflect.Value, to column.Value) {
	j := journal.Of(stmt)
	if j == nil {
		m.Column.Write(row, to)
		return
	}
	a := &adopted{}
	a.memory.In = memory.WrittenTable(stmt, m.Schema)
	a.memory.Find(m, row.Addr().Interface())
	a.memory.Keep()
	m.Column.Write(row, to)
	a.memory.Leave()
	j.Keep(a)
}

// MustBeAt returns the error of a struct that is not at its row's version because the transaction has written the row with another struct.
func MustBeAt(db *gorm.DB, m *model.Model, row reflect.Value, key []any) error {
	name, held := statement.KeyName(key), m.Column.Read(row)
	if hasWrite(db.Statement, m, func(w *Write) bool {
		return w.left(db.Statement, name, func(was, after column.Value) bool { return differ(was, after) && after.Equal(held) })
	}) {
		return nil
	}
	a := &answer{}
	a.model, a.op, a.version.Version = m, OpTouch, m.Column
	found, err := a.look(db.Session(&gorm.Session{NewDB: true}).Model(reflect.New(m.Schema.ModelType).Interface()), [][]any{key}) // the struct may have been read since
	switch {
	case err != nil:
		return err
	case found[0].isLive() && m.Column.Read(found[0].Value).Equal(held):
		return nil
	}
	e := &fault.Stale{Table: m.Schema.Table, Op: OpTouch.String(), PrimaryKey: map[string]any{}, Expected: m.Column.Any(held), Own: hasLeft(db.Statement, m, name, held, true)}
	if found[0].isLive() {
		e.Actual = m.Column.Any(m.Column.Read(found[0].Value))
	}
	for i, field := range m.Schema.PrimaryFields {
		e.PrimaryKey[field.DBName] = key[i]
		e.Keys = append(e.Keys, field.DBName)
	}
	return e.Err()
}

// hasLeft reports whether the transaction certainly wrote the row of this name at the given version. If moved is set, a write that kept the version
// does not count.
func hasLeft(stmt *gorm.Statement, m *model.Model, name string, from column.Value, moved bool) bool {
	return m.Column.Loaded(from) && hasWrite(stmt, m, func(w *Write) bool { return !w.outcome.none && w.hasLeft(stmt, name, from, moved) })
}

// Touched reports whether everything that the transaction did to the row with this key was to move its version, as a root, from the given one. It
// returns the new version.
func Touched(stmt *gorm.Statement, m *model.Model, key []any, from column.Value) (to column.Value, touched bool) {
	name := statement.KeyName(key)
	hasWrite(stmt, m, func(w *Write) bool {
		if !w.intent.Touches() || w.outcome.none || !w.wrote(stmt, name) {
			return false
		}
		if was := w.memory.Was(0); was.IsValid() && w.version.Loaded(w.version.Read(was)) {
			if after := w.memory.Of(w.memory.After, 0); after.IsValid() && w.version.Read(was).Equal(from) {
				to, touched = w.version.Read(after), true
			}
			return touched
		}
		if returned := w.returning.first(); returned.IsValid() {
			after := w.version.Read(returned)
			if w.version.Follows(after, from) {
				to, touched = after, true
			}
		}
		return touched
	})
	return to, touched
}

// hasWrite reports whether the transaction has such a write of the model, in the statement's table.
func hasWrite(stmt *gorm.Statement, m *model.Model, is func(*Write) bool) bool {
	j := journal.Of(stmt)
	if j == nil {
		return false
	}
	in, path := memory.TableOf(stmt, m.Schema), j.Path()
	return j.Has(func(step journal.Step) bool {
		w, ok := step.(*Write)
		return ok && w.path == path && w.memory.In.IsNamed(in) && w.version.is() && w.model.Schema.Table == m.Schema.Table && is(w)
	})
}

// movedByBulk reports whether a statement about many rows of the same transaction moved the row with this key: the server knows that the
// transaction was the last to write the row.
func movedByBulk(stmt *gorm.Statement, m *model.Model, key []any) bool {
	if !hasWrite(stmt, m, func(w *Write) bool { return w.isBulk() && w.built.bumps && !w.outcome.none }) {
		return false
	}
	wrote, known := journal.WroteAny(stmt, func(q *gorm.DB) *gorm.DB {
		q = q.Model(reflect.New(m.Schema.ModelType).Interface()).Where(KeyIn(m.Schema, [][]any{key}))
		statement.SameTable(q.Statement, stmt)
		return q
	})
	return wrote && known
}
