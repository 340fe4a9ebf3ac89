package guard

import (
	"errors"
	"reflect"
	"slices"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// settleCreate gives the structs that were stored their version, and compares the rows of an upsert with them.
func (w *Write) settleCreate(db *gorm.DB) {
	w.returning.collect(db.Statement)
	switch {
	case db.Error != nil:
		if !w.explainUpsert(db) && !w.explainFence(db) && w.op == OpUpsert {
			w.serializationFailure(db)
		}
		return
	case db.DryRun || !w.version.is() && w.fence == nil:
		w.outcome.done = true
		return
	}
	if !dialect.Of(db).IsMySQL() { // where such an upsert has failed
		if err := w.whyFencedUpsert(db); err != nil {
			w.refuse(db, err)
			return
		}
	}
	could, err := w.readUpsert(db)
	if err != nil {
		w.refuse(db, errors.Join(w.staleError(db.Statement, nil).Err(), err))
		return
	}
	switch {
	case len(w.upsert.rows) > 0 && (could || w.returning.has()):
		w.settleUpsert(db)
	case len(w.upsert.rows) > 0:
		w.settleUnseen(db)
	default:
		w.settleInsert(db)
	}
}

// settleInsert is for a plain INSERT. GORM has read its rows by their positions.
func (w *Write) settleInsert(db *gorm.DB) {
	v := &w.version
	w.followCreated(db)
	defer w.keepWritten(db.Statement)
	if !v.is() || v.IsSystem() || w.returning != nil && w.returning.byPosition {
		return
	}
	for i := range w.memory.Count {
		if row := w.memory.Row(i); row.CanAddr() && v.Unset(v.Read(row)) {
			v.Write(row, w.single[0].next)
		}
	}
}

// settleUnseen is for an upsert that could not return its rows, so it is not known whether the structs equal them.
func (w *Write) settleUnseen(db *gorm.DB) {
	if w.version.checked && int(db.RowsAffected) < len(w.rows) {
		w.refuse(db, w.staleError(db.Statement, nil).Err())
		return
	}
	w.followCreated(db)
	for i := range w.rows {
		if row := &w.rows[i]; row.Struct.CanAddr() {
			w.version.Write(row.Struct, w.unread(row))
		}
	}
	w.keepWritten(db.Statement)
}

// settleUpsert compares the rows that came back with the structs, and makes the structs what their rows are.
func (w *Write) settleUpsert(db *gorm.DB) {
	from, err := w.rowsOfUpsert(db)
	if w.upsert.skips && dialect.Of(db).IsMySQL() {
		w.keepInserted(db, from)
	}
	if err == nil {
		err = w.whyRefused(db, from)
	}
	if err != nil {
		w.refuse(db, err)
		return
	}
	for i := range w.rows {
		row := &w.rows[i]
		if !row.Struct.CanAddr() {
			continue
		}
		switch was := w.memory.Was(i); {
		case w.isUnseen(db, i, from[i]):
			w.version.Write(row.Struct, w.version.Unread())
		case from[i].IsValid():
			w.followUpsert(i, from[i])
		case w.upsert.rows[i].found.IsValid():
			w.followFound(i)
		case !w.upsert.child: // GORM has given it what new rows get
			w.memory.RestoreRow(i)
		case w.version.is() && was.IsValid(): // and a child its first version: by its default
			w.version.Write(row.Struct, w.version.Read(was))
		}
	}
	w.keepWritten(db.Statement)
}

// rowsOfUpsert returns the rows that came back, each at the place of its struct. If every struct was written, the rows come
// in the order of the structs. If some were left alone, rows are matched by key, and structs without a key as matchKeyless
// does.
func (w *Write) rowsOfUpsert(db *gorm.DB) ([]reflect.Value, error) {
	rows := w.returning.all()
	if len(rows) == len(w.rows) && !w.returning.back {
		return rows, nil
	}
	keys := make([][]any, len(w.rows))
	keyless := 0
	for i := range w.rows {
		if keys[i] = w.rows[i].Key; keys[i] == nil {
			keyless++
		}
	}
	from, left := w.matchNames(db.Statement, keys, rows)
	if len(left) > keyless {
		if err := w.matchLeft(db, keys, from, left); err != nil {
			return nil, err
		}
		left = slices.DeleteFunc(left, func(row reflect.Value) bool {
			return slices.ContainsFunc(from, func(other reflect.Value) bool {
				return other.IsValid() && other.Addr().Pointer() == row.Addr().Pointer()
			})
		})
	}
	w.matchKeyless(db.Statement, from, left, keyless)
	return from, nil
}

// matchKeyless finds the rows of structs without a key: in their order if there are as many rows as structs, otherwise by
// the columns of the conflict.
func (w *Write) matchKeyless(stmt *gorm.Statement, from, left []reflect.Value, keyless int) {
	inOrder := len(left) == keyless
	fields := w.conflictFields(stmt)
	for i := range w.rows {
		if w.rows[i].Key != nil {
			continue
		}
		for n, row := range left {
			if row.IsValid() && (inOrder || len(fields) > 0 && statement.KeyName(valuesIn(stmt, fields, w.structBefore(i))) == statement.KeyName(valuesIn(stmt, fields, row))) {
				from[i], left[n] = row, reflect.Value{}
				break
			}
		}
	}
}

// structBefore is the struct as it was before the statement: GORM may have given it the key of another row.
func (w *Write) structBefore(i int) reflect.Value {
	if was := w.memory.Was(i); was.IsValid() {
		return was
	}
	return w.memory.Row(i)
}

// followUpsert makes the struct equal to its row. If the upsert sets only the foreign key of a child, the child gets the
// row's version only if that was compared and moved, because others may have written the row.
func (w *Write) followUpsert(i int, from reflect.Value) {
	v, u, row := &w.version, w.upsert, &w.rows[i]
	held := v.Read(row.Struct)
	w.returning.give(from, row.Struct, w.model.Schema.Relationships.BelongsTo)
	w.fence.follow(row.Struct)
	switch {
	case w.returning.whole:
		// it has all of its row
	case u.skips:
		v.Write(row.Struct, row.next) // it was inserted
	case u.rows[i].loaded && u.links && !u.rows[i].moves:
		v.Write(row.Struct, row.held)
	case u.rows[i].loaded && !w.intent.preserves():
		v.Write(row.Struct, v.Read(from))
	case !u.rows[i].loaded && v.Read(from).Equal(v.Stored(row.next)):
		v.Write(row.Struct, v.Read(from)) // it was inserted
	default:
		v.Write(row.Struct, w.unread(&Row{held: held}))
	}
}

// whyRefused returns which structs of an upsert were not written, or were inserted because their row was gone.
func (w *Write) whyRefused(db *gorm.DB, from []reflect.Value) error {
	v, u, stmt := &w.version, w.upsert, db.Statement
	var all []error
	var absent []*Row
	for i := range w.rows {
		row, r := &w.rows[i], u.rows[i]
		wrote := from[i].IsValid()
		switch {
		case !r.loaded && !r.unread, u.skips && !wrote:
		case u.skips:
			all = append(all, w.stale(stmt, row, nil, true).Err())
		case !wrote:
			absent = append(absent, row)
		case r.loaded && !r.mayBeNew && (!u.links || r.moves || r.apart) && v.Read(from[i]).Equal(v.Stored(row.next)):
			all = append(all, w.stale(stmt, row, nil, true).Err())
		}
	}
	if len(absent) > 0 {
		whys, err := w.whyAbsent(db, absent)
		if err != nil {
			return errors.Join(w.staleError(stmt, absent[0]).Err(), err)
		}
		all = append(all, whys...)
	}
	return joined(all)
}

func joined(all []error) error {
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}
