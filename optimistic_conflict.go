package gormlock

import (
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// refuse makes err the statement's error. Where it has written something by then, the transaction it runs in must not
// be committed.
func (w *versionWrite) refuse(db *gorm.DB, err error) {
	if err == nil {
		if !w.inserted {
			w.memory.restore()
		}
		w.done = true
		return
	}
	if errors.Is(err, ErrStale) || errors.Is(err, ErrFenced) {
		j := journalOf(db.Statement)
		if db.RowsAffected > 0 || j != nil && j.isStrict() || w.wroteBefore(db.Statement) {
			doom(db, err)
		}
	}
	doomWithParent(db, err)
	pluginOf(db).tellRefused(db.Statement.Context, err)
	fail(db, err)
}

// doomWithParent keeps what a statement stored before one of its associations was refused with err from being committed.
func doomWithParent(db *gorm.DB, err error) {
	if isAssociation(db.Statement) {
		doom(db, err)
	}
}

// doom keeps the transaction of db from being committed. Where gormlock does not see the commit the server must refuse it:
// one statement that fails is enough, and a savepoint set before heals it.
func doom(db *gorm.DB, err error) {
	if j := journalOf(db.Statement); j != nil {
		j.doom(err)
		return
	}
	tx := transactionOf(db.Statement)
	if _, own := db.InstanceGet("gorm:started_transaction"); own || tx == nil || db.DryRun || !isPostgres(db) {
		return // GORM rolls its own back
	}
	_, _ = tx.ExecContext(db.Statement.Context, "SELECT 'gormlock: an earlier write was refused'::bigint")
}

// wroteBefore tells whether something was stored before the statement itself: what its structs belong to, or, of a
// delete, their children.
func (w *versionWrite) wroteBefore(stmt *gorm.Statement) bool {
	if w.op == opDelete {
		return len(stmt.Selects) > 0
	}
	for _, relation := range w.model.schema.Relationships.BelongsTo {
		for i := range w.memory.count {
			if _, zero := relation.Field.ValueOf(stmt.Context, w.memory.row(i)); !zero {
				return true
			}
		}
	}
	return false
}

// serializationFailure makes 40001 in a checked write what it is: the row was changed by another transaction.
func (w *versionWrite) serializationFailure(db *gorm.DB) {
	if !w.built || !w.compares() || sqlState(db.Error) != "40001" {
		return
	}
	stale := w.staleError(db.Statement, nil)
	if len(w.rows) == 1 {
		stale = w.staleError(db.Statement, &w.rows[0])
	}
	stale.cause = db.Error
	db.Error = nil
	pluginOf(db).tellRefused(db.Statement.Context, stale)
	fail(db, stale)
}

func (w *versionWrite) staleError(stmt *gorm.Statement, row *versionRow) *StaleError {
	e := &StaleError{Table: w.tableName(stmt), Op: w.op.String(), PrimaryKey: map[string]any{}}
	expected := w.single[0].expected
	if row != nil {
		w.named(stmt, row)
		expected = row.expected
		for i, field := range w.model.schema.PrimaryFields {
			e.PrimaryKey[field.DBName] = row.key[i]
			e.keys = append(e.keys, field.DBName)
		}
	}
	if w.model.column != nil && w.checked && (row != nil || !w.batch) {
		e.Expected = w.model.column.any(expected)
	}
	return e
}

func (w *versionWrite) stale(stmt *gorm.Statement, row *versionRow, actual any, deleted bool) *StaleError {
	e := w.staleError(stmt, row)
	e.Actual, e.Deleted = actual, deleted
	return e
}

// unlooked is the error of a row that was not written where the reason could not be read.
func (w *versionWrite) unlooked(stmt *gorm.Statement, row *versionRow, err error) error {
	if w.compares() {
		return errors.Join(w.staleError(stmt, row), err)
	}
	return fmt.Errorf("gormlock: %s was not written, and why is not known: %w", w.rowName(stmt, w.named(stmt, row).key), err)
}

// tableName is the table in messages: not by the alias that a statement may have for it.
func (w *versionWrite) tableName(stmt *gorm.Statement) string {
	if stmt.TableExpr != nil {
		return w.model.table
	}
	return stmt.Table
}

func (w *versionWrite) rowName(stmt *gorm.Statement, key []any) string {
	values, columns := map[string]any{}, []string{}
	for i, field := range w.model.schema.PrimaryFields {
		values[field.DBName] = key[i]
		columns = append(columns, field.DBName)
	}
	return rowName(w.tableName(stmt), columns, values)
}

// missing is the error of a struct that was not read from its row.
func (w *versionWrite) missing(stmt *gorm.Statement, key []any, actual any) error {
	at := ""
	if actual != nil {
		at = fmt.Sprintf(", the row is at %s", showVersion(actual))
	}
	return fmt.Errorf("%w: %s: %s was not read from its row%s: read it first, or use ExpectVersion or IgnoreVersion",
		ErrVersionMissing, w.rowName(stmt, key), w.model.column.field.Name, at)
}

// whyNone says why a statement about one row wrote none: nil where only the caller's own conditions did not hold.
func (w *versionWrite) whyNone(db *gorm.DB) error {
	stmt := db.Statement
	if len(w.rows) == 0 {
		return w.whyNoRows(db)
	}
	found, err := w.look(db, [][]any{w.named(stmt, &w.rows[0]).key})
	if err != nil {
		return w.unlooked(stmt, &w.rows[0], err)
	}
	return w.why(db, &w.rows[0], found)
}

// whyFewer says why a batch wrote fewer rows than it has.
func (w *versionWrite) whyFewer(db *gorm.DB, returned map[string]reflect.Value) error {
	stmt := db.Statement
	if returned == nil && db.RowsAffected > 0 && w.compares() {
		// Nothing says which rows were written, and those are at new versions by now.
		return w.staleError(stmt, nil)
	}
	var absent []*versionRow
	var keys [][]any
	for i := range w.rows {
		row := &w.rows[i]
		if _, wrote := returned[row.name]; !wrote && !row.twin {
			absent = append(absent, row)
			keys = append(keys, row.key)
		}
	}
	found, err := w.look(db, keys)
	if err != nil {
		return w.unlooked(stmt, absent[0], err)
	}
	var all []error
	for _, row := range absent {
		if err := w.why(db, row, found); err != nil {
			all = append(all, err)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}

// why says why row was not written, by what was found of it.
func (w *versionWrite) why(db *gorm.DB, row *versionRow, found map[string]reflect.Value) error {
	stmt, column := db.Statement, w.model.column
	current, live := found[row.name]
	if err := w.whyFenced(stmt, row, current, live); err != nil {
		return err
	}
	switch {
	case !w.compares():
		return nil
	case !live && w.save && w.isNew(row) && isSave():
		return w.insertInstead(db)
	case !live && !w.checked && w.intent.columns() == nil && !isSave():
		return nil
	case !live:
		return w.stale(stmt, row, nil, true)
	case w.checked && !row.expected.equal(column.read(current)) && !column.loaded(row.expected):
		if actual := column.read(current); !actual.null && (column.kind != integerVersion || actual.n != 0) {
			return w.missing(stmt, row.key, column.any(actual))
		}
	case w.checked && !row.expected.equal(column.read(current)):
		return w.stale(stmt, row, column.any(column.read(current)), false)
	}
	if unchanged := w.intent.columns(); unchanged != nil {
		e := w.stale(stmt, row, nil, false)
		if w.checked {
			e.Actual = e.Expected
		}
		e.columns = unchanged.names
		return e
	}
	if w.checked && !w.filtered {
		e := w.stale(stmt, row, nil, false)
		e.Actual, e.cause = e.Expected, errNotWritten
		return e
	}
	if w.save && isSave() {
		return fmt.Errorf("gormlock: %s: the conditions of this save do not hold: %w", w.rowName(stmt, row.key), gorm.ErrRecordNotFound)
	}
	return nil
}

// errNotWritten is why a row at the right version was not written though nobody asked for more.
var errNotWritten = errors.New("nothing was written: a trigger, a policy or a condition that a plugin added kept the row, or it was gone for a moment")

// filtered tells, before GORM adds the key, whether the caller has conditions of his own.
func filtered(stmt *gorm.Statement) bool {
	if len(stmt.Clauses) == 1 { // it is ours
		return false
	}
	_, where := stmt.Clauses["WHERE"]
	_, from := stmt.Clauses["FROM"]
	return where || from
}

// whyNoRows says why a statement without a key, which named its version itself, wrote nothing.
func (w *versionWrite) whyNoRows(db *gorm.DB) error {
	if w.fence.guards() {
		if err := w.whyFencedMany(db); err != nil || !w.compares() {
			return err
		}
	}
	stmt := db.Statement
	where, _ := stmt.Clauses["WHERE"].Expression.(clause.Where)
	found, err := w.lookWhere(db, func(q *gorm.DB) *gorm.DB {
		return q.Clauses(where).Limit(2)
	})
	e := w.staleError(stmt, nil)
	if err != nil {
		return errors.Join(e, err)
	}
	if len(found) == 1 {
		for _, row := range found {
			one := versionRow{expected: w.single[0].expected}
			one.key, _ = keyOf(stmt, w.model.schema, row)
			e = w.staleError(stmt, &one)
			if w.model.column != nil {
				e.Actual = w.model.column.any(w.model.column.read(row))
			}
		}
	}
	e.Deleted = len(found) == 0
	if unchanged := w.intent.columns(); unchanged != nil {
		e.columns = unchanged.names
	}
	return e
}
