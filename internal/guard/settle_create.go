package guard

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// settleCreate gives the stored structs their version, and compares the rows of an upsert with them.
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
	case w.isUpsertBypassed(db):
		w.refuseBypass(db)
		return
	}
	if !dialect.Of(db).IsMySQL() { // on MySQL such an upsert has failed
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

// settleInsert is for a plain INSERT. GORM has read its rows by position, which is right if no row is missing.
func (w *Write) settleInsert(db *gorm.DB) {
	v := &w.version
	conflict, _ := db.Statement.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	switch u, stored := w.upsert, int(db.RowsAffected); {
	case u.onlyInserts() && stored < int(w.built.proposed) && len(conflict.Where.Exprs) == 0:
		w.refuseMet(db, stored)
		return
	case !u.updates && !u.skips && w.refuseUnstored(db, stored):
		return
	}
	w.followCreated(db)
	defer w.keepWritten(db.Statement)
	if w.returning != nil && w.returning.inOrder {
		w.giveInOrder()
		return
	}
	if !v.is() || v.IsSystem() || w.returning != nil && w.returning.byPosition {
		return
	}
	for i := range w.memory.Count {
		if row := w.memory.Row(i); row.CanAddr() && v.Unset(v.Read(row)) {
			v.Write(row, w.single[0].next)
		}
	}
}

// giveInOrder gives the structs of a plain INSERT the returned rows.
func (w *Write) giveInOrder() {
	for i, from := range w.returning.all() {
		if i < w.memory.Count && w.memory.Row(i).CanAddr() {
			w.returning.give(from, w.memory.Row(i), nil)
		}
	}
}

// refuseUnstored fails a create that stored fewer rows than it was given. The server does not say which ones.
func (w *Write) refuseUnstored(db *gorm.DB, stored int) bool {
	if stored >= int(w.built.proposed) {
		return false
	}
	err := fmt.Errorf("gormlock: %s: %d of %d rows were stored, a trigger or a rule of the table kept the others out: use clause.OnConflict{DoNothing: true} if rows may stay out",
		statement.TableName(db.Statement), stored, w.built.proposed)
	if conflict, _ := db.Statement.Clauses["ON CONFLICT"].Expression.(clause.OnConflict); updatesNothing(conflict) {
		err = errUpdatesNothing(db.Statement)
	}
	if stored > 0 {
		journal.Doom(db, err)
	}
	w.refuse(db, err)
	return true
}

// refuseUnmatched fails an upsert if returned rows match no struct by their values: their structs would count as new, and the next Save of one
// would store it twice.
func (w *Write) refuseUnmatched(db *gorm.DB, rows int) {
	err := fmt.Errorf("gormlock: %s: %d rows were stored of which it is not known which structs they are: give the structs their keys, or name unique columns in clause.OnConflict{Columns: …}",
		statement.TableName(db.Statement), rows)
	journal.Doom(db, err)
	w.refuse(db, err)
}

// present are those of the rows that exist.
func present(rows []reflect.Value) []reflect.Value {
	return slices.DeleteFunc(slices.Clone(rows), func(row reflect.Value) bool { return !row.IsValid() })
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

// settleUpsert compares the returned rows with the structs, and makes the structs equal to their rows.
func (w *Write) settleUpsert(db *gorm.DB) {
	conflict, _ := db.Statement.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	from, err := w.rowsOfUpsert(db)
	lost := w.returning.len() - len(present(from))
	if w.upsert.skips && dialect.Of(db).IsMySQL() {
		w.keepInserted(db, from)
	}
	if err == nil {
		w.heedTold(from)
		err = cmp.Or(w.whyRunningConflict(db, from), w.whyRefused(db, from))
	}
	if err == nil {
		if err = w.whyUnmoved(db, from); err != nil {
			journal.Doom(db, err)
		}
	}
	if err == nil && (w.upsert.skips || len(conflict.Where.Exprs) > 0) {
		if err = cmp.Or(w.whyUnlinked(db, from), w.whyUnnamed(db, from), w.whyOrphaned(db, from)); err != nil {
			journal.Doom(db, err)
		}
	}
	if err != nil {
		w.refuse(db, err)
		return
	}
	if lost > 0 && !w.returning.back {
		w.refuseUnmatched(db, lost)
		return
	}
	if w.mayHaveMet(from, len(conflict.Where.Exprs) > 0) {
		w.refuseMet(db, len(present(from)))
		return
	}
	if !w.upsert.skips && !w.returning.back && len(conflict.Where.Exprs) == 0 && w.refuseUnstored(db, w.returning.len()) {
		return
	}
	stored := map[uintptr]bool{} // a slice of pointers may have a struct twice
	for i := range w.rows {
		if row := &w.rows[i]; from[i].IsValid() && row.Struct.CanAddr() {
			stored[row.Struct.Addr().Pointer()] = true
		}
	}
	for i := range w.rows {
		row := &w.rows[i]
		if !row.Struct.CanAddr() || !from[i].IsValid() && stored[row.Struct.Addr().Pointer()] {
			continue
		}
		switch was := w.memory.Was(i); {
		case w.isUnseen(db, i, from[i]):
			w.version.Write(row.Struct, w.version.Unread())
		case from[i].IsValid():
			w.followUpsert(db, i, from[i])
		case w.upsert.rows[i].found.IsValid():
			w.followFound(i)
		case !w.upsert.child: // GORM has given it the values of new rows
			w.memory.RestoreRow(i)
			w.forgetZero(row)
		case w.version.is() && was.IsValid():
			w.keepZeros(i)
			w.version.Write(row.Struct, w.version.Read(was))
		}
	}
	w.keepWritten(db.Statement)
}

// forgetZero makes a struct unread that the upsert skipped, if it holds 0 and versions start there. The struct may be new, and the row another
// writer's.
func (w *Write) forgetZero(row *Row) {
	if v := &w.version; v.is() && v.ZeroIsLoaded() && v.Read(row.Struct).N == 0 {
		v.Write(row.Struct, v.Unread())
	}
}

// followUpsert makes the struct equal to its row. If the upsert sets only the foreign key of a child, the child gets the row's version only if that
// was compared and moved. Otherwise others may have written the row.
func (w *Write) followUpsert(db *gorm.DB, i int, from reflect.Value) {
	v, u, row := &w.version, w.upsert, &w.rows[i]
	held := v.Read(row.Struct)
	w.returning.give(from, row.Struct, w.model.Schema.Relationships.BelongsTo)
	w.fence.follow(row.Struct)
	if u.links && u.rows[i].loaded {
		w.keepZeros(i)
	}
	inserted := !u.rows[i].loaded && v.is() && v.Read(from).Equal(v.Stored(row.next)) && (!u.rows[i].unsure || w.mirrorsRow(db.Statement, from, row.Struct))
	switch {
	case w.returning.whole:
		if w.adopts(from) && !u.rows[i].loaded && !inserted && (!u.whole || !db.Statement.SkipHooks) {
			w.find(db, row.Struct)
		}
	case u.skips:
		v.Write(row.Struct, row.next) // it was inserted
	case u.rows[i].loaded && u.links && !u.rows[i].moves:
		v.Write(row.Struct, row.held)
	case u.rows[i].loaded && !w.intent.Preserves():
		v.Write(row.Struct, v.Read(from))
	case inserted:
		v.Write(row.Struct, v.Read(from)) // it was inserted
	default:
		v.Write(row.Struct, w.unread(&Row{held: held}))
	}
}

// keepZeros puts back the zeros of a child whose row was there: GORM has put defaults and times of a new row into the struct.
func (w *Write) keepZeros(i int) {
	was, row := w.memory.Was(i), w.rows[i].Struct
	for _, field := range w.model.Schema.Fields {
		if field.PrimaryKey || field.DefaultValueInterface == nil && field.AutoCreateTime == 0 && field.AutoUpdateTime == 0 {
			continue
		}
		if place := statement.Place(field, row); place.IsValid() && place.CanSet() && statement.Place(field, was).IsZero() {
			place.SetZero()
		}
	}
}

// explainUpsert turns the failure of a guarded upsert into the conflict of the refused rows.
func (w *Write) explainUpsert(db *gorm.DB) bool {
	if !dialect.IsFailure(db.Error) {
		return false
	}
	failed := db.Error
	db.Error = nil
	err := w.whyFencedConflicting(db)
	if err == nil {
		err = w.whyUpsertFailed(db)
	}
	if err == nil {
		err = fmt.Errorf("gormlock: %s: the upsert found a row by another unique index than it names, or one that was changed meanwhile: nothing was written: %w",
			statement.TableName(db.Statement), failed)
	}
	w.memory.Restore()
	w.refuse(db, err)
	return true
}

// followFound gives a struct the key of the row that was found instead of it.
func (w *Write) followFound(i int) {
	found, to := w.upsert.rows[i].found, w.rows[i].Struct
	if !found.IsValid() {
		return
	}
	for _, field := range w.model.Schema.PrimaryFields {
		if source, place := statement.Place(field, found), statement.Place(field, to); source.IsValid() && place.IsValid() && place.CanSet() {
			place.Set(source)
		}
	}
	w.version.Write(to, w.version.Unread())
}

// followCreated gives the structs that a create stored their token. If the create may have skipped rows, the stored structs are those that have a
// key now and had none before.
func (w *Write) followCreated(db *gorm.DB) {
	f, stmt := w.fence, db.Statement
	if !f.guards() {
		return
	}
	skips := statement.DoesNothing(stmt) && w.batch && len(stmt.Schema.FieldsWithDefaultDBValue) > 0
	all := int(db.RowsAffected) >= f.proposed && !skips
	for i := range w.memory.Count {
		if all || w.gotKey(stmt, i) {
			f.follow(w.memory.Row(i))
		}
	}
}

// gotKey reports whether the statement gave the struct its key.
func (w *Write) gotKey(stmt *gorm.Statement, i int) bool {
	_, had := statement.KeyOf(stmt, w.model.Schema, w.memory.Was(i))
	_, has := statement.KeyOf(stmt, w.model.Schema, w.memory.Row(i))
	return has && !had
}
