package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/statement"
)

// Undo implements journal.Step.
func (w *Write) Undo() { w.undo() }

// Lose implements journal.Step. Nothing can be undone after it.
func (w *Write) Lose() {
	w.outcome.undone = true
	w.lose()
}

// lose makes the structs unread whose versions the statement moved, because their rows may not have these versions. The next write of such a struct
// is ErrVersionMissing.
func (w *Write) lose() {
	v := &w.version
	if !v.is() {
		return
	}
	for i := range w.memory.Count {
		row := w.memory.Row(i)
		if !row.IsValid() || !row.CanAddr() || w.memory.IsUsed(i) {
			continue
		}
		was := w.memory.Was(i)
		stays := w.op != OpCreate && w.op != OpUpsert || w.upsert != nil && w.upsert.skips && was.IsValid() && v.Loaded(v.Read(was))
		if stays && was.IsValid() && v.Read(was).Equal(v.Read(row)) && !w.memory.Changed(i) {
			continue // it was read before, and the statement did not change it
		}
		v.Write(row, v.Unread())
	}
}

// wrote reports whether the statement left the row of this name in its structs, or returned it.
func (w *Write) wrote(stmt *gorm.Statement, name string) bool {
	is := func(row reflect.Value) bool {
		key, _ := statement.KeyOf(stmt, w.model.Schema, row)
		return key != nil && statement.KeyName(key) == name
	}
	for i := range w.memory.Count {
		row := w.memory.Of(w.memory.After, i)
		if !row.IsValid() {
			row = w.memory.Row(i)
		}
		if is(row) {
			return true
		}
	}
	return slices.ContainsFunc(w.returning.seen(), is)
}

// left reports whether the statement had a struct of the row of this name for whose versions, before and after, is returns true.
func (w *Write) left(stmt *gorm.Statement, name string, is func(was, after column.Value) bool) bool {
	for i := range w.memory.Count {
		was, after := w.memory.Was(i), w.memory.Of(w.memory.After, i)
		if !was.IsValid() || !after.IsValid() {
			continue
		}
		if key, _ := statement.KeyOf(stmt, w.model.Schema, after); key != nil && statement.KeyName(key) == name && is(w.version.Read(was), w.version.Read(after)) {
			return true
		}
	}
	return false
}

// compared reports whether the statement compared the versions of its structs with those of their rows.
func (w *Write) compared() bool {
	return w.version.checked && !w.built.unchecked && !w.intent.Ignores()
}

// hasLeft reports whether the statement wrote the row at that version: its struct was compared, or the returned version comes after the given one.
func (w *Write) hasLeft(stmt *gorm.Statement, name string, from column.Value, moved bool) bool {
	removes := w.op == OpDelete || w.built.hides
	if w.compared() && w.left(stmt, name, func(was, after column.Value) bool {
		return was.Equal(from) && (!moved || removes || differ(was, after))
	}) {
		return true
	}
	next := func(row reflect.Value) bool {
		key, _ := statement.KeyOf(stmt, w.model.Schema, row)
		return key != nil && statement.KeyName(key) == name && w.version.Follows(w.version.Read(row), from)
	}
	return w.built.bumps && slices.ContainsFunc(w.returning.seen(), next)
}

// undo restores, once, the structs of a statement that was rolled back.
func (w *Write) undo() {
	if !w.outcome.undone {
		w.outcome.undone = true
		w.memory.Undo()
		w.forgetEmptied()
	}
}

// forgetEmptied makes structs unread that cannot be restored.
func (w *Write) forgetEmptied() {
	if !w.emptied {
		return
	}
	for i := range w.memory.Count {
		if row := w.memory.Row(i); row.IsValid() && row.CanAddr() && !w.memory.IsUsed(i) {
			w.version.Write(row, w.version.Unread())
		}
	}
}

func differ(was, after column.Value) bool { return !was.Equal(after) }
