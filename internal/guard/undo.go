package guard

import "reflect"

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
		if row := w.memory.Row(i); row.IsValid() && row.CanAddr() {
			w.version.Write(row, w.version.Unread())
		}
	}
}

// structOf returns the struct of a row as a value that can be written to. It is a copy if the caller's struct cannot be
// written to.
func structOf(row reflect.Value) reflect.Value {
	if row.CanAddr() {
		return row
	}
	own := reflect.New(row.Type()).Elem()
	own.Set(row)
	return own
}
