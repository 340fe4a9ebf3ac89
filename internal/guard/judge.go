package guard

import (
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// serializationFailure turns 40001 in a checked write into the error of a stale row: another transaction has changed it. It
// also names the row of a touch that accepts any version, such as a root that is moved by its key.
func (w *Write) serializationFailure(db *gorm.DB) {
	if !w.built.any || !w.compares() && !w.intent.touches() || sqlstate.Of(db.Error) != sqlstate.SerializationFailure {
		return
	}
	stale := w.staleError(db.Statement, nil)
	if len(w.rows) == 1 {
		stale = w.staleError(db.Statement, &w.rows[0])
	}
	stale.Cause = db.Error
	err := stale.Err()
	db.Error = nil
	install.Of(db).TellRefused(db.Statement.Context, err)
	fault.Add(db, err)
}

// versionIsFull turns an "out of range" error of a touch into one about the version, because a touch increments nothing
// else.
func (w *Write) versionIsFull(db *gorm.DB) bool {
	if !w.intent.touches() || !w.version.is() || !w.version.IsInteger() || len(w.rows) == 0 || sqlstate.Of(db.Error) != sqlstate.NumericValueOutOfRange {
		return false
	}
	err := fmt.Errorf("gormlock: %s: its version is the largest its column holds: give the column %s a larger type: %w",
		w.rowName(db.Statement, w.named(db.Statement, &w.rows[0]).Key), w.version.Field.DBName, db.Error)
	db.Error = nil
	fault.Add(db, err)
	return true
}

func (w *Write) staleError(stmt *gorm.Statement, row *Row) *fault.Stale {
	e := &fault.Stale{Table: statement.TableName(stmt), Op: w.op.String(), PrimaryKey: map[string]any{}}
	expected := w.single[0].Expected
	if row != nil {
		w.named(stmt, row)
		expected = row.Expected
		for i, field := range w.model.Schema.PrimaryFields {
			e.PrimaryKey[field.DBName] = row.Key[i]
			e.Keys = append(e.Keys, field.DBName)
		}
	}
	if w.version.is() && w.version.checked && (row != nil || !w.batch) {
		e.Expected = w.version.Any(expected)
		e.Given = w.version.given
		if w.version.choice != nil {
			e.Expected = w.version.choice.String()
		}
	}
	return e
}

func (w *Write) stale(stmt *gorm.Statement, row *Row, actual any, deleted bool) *fault.Stale {
	e := w.staleError(stmt, row)
	e.Actual, e.Deleted = actual, deleted
	e.Own = w.isOwn(stmt, row)
	return e
}

// isOwn reports whether the transaction itself moved the row from the expected version, or deleted the row at that version.
// If a rival moved the row before, another attempt cures the conflict, whatever the transaction did to the row afterwards.
func (w *Write) isOwn(stmt *gorm.Statement, row *Row) bool {
	return row != nil && w.version.is() && w.version.checked && w.version.choice == nil && hasLeft(stmt, w.model, row.name, row.Expected, true)
}

// unlooked is the error of a row that was not written, if reading the reason failed.
func (w *Write) unlooked(stmt *gorm.Statement, row *Row, err error) error {
	if w.compares() {
		return errors.Join(w.staleError(stmt, row).Err(), err)
	}
	return fmt.Errorf("gormlock: %s was not written, and the reason could not be read: %w", w.rowName(stmt, w.named(stmt, row).Key), err)
}

func (p *plan) rowName(stmt *gorm.Statement, key []any) string {
	values, columns := map[string]any{}, []string{}
	for i, field := range p.model.Schema.PrimaryFields {
		values[field.DBName] = key[i]
		columns = append(columns, field.DBName)
	}
	return fault.Row(statement.TableName(stmt), columns, values)
}

// missing is the error of a struct that was not read from its row.
func (p *plan) missing(stmt *gorm.Statement, key []any, actual any) error {
	at := ""
	if actual != nil {
		at = fmt.Sprintf(", the row is at %s", fault.Version(actual))
	}
	return fmt.Errorf("%w: %s: %s was not read from its row%s: read it first, or use ExpectVersion or IgnoreVersion",
		fault.ErrVersionMissing, p.rowName(stmt, key), p.model.Column.Field.Name, at)
}

// whyNone returns why a statement about one row wrote none. It returns nil if only conditions of the caller did not hold.
func (w *Write) whyNone(db *gorm.DB) error {
	if len(w.rows) == 0 {
		return w.whyNoRows(db)
	}
	row := w.named(db.Statement, &w.rows[0])
	found, err := w.look(db, [][]any{row.Key})
	if err != nil {
		return w.unlooked(db.Statement, row, err)
	}
	return w.why(db, row, found[0])
}

// whyFewer returns why a batch wrote fewer rows than it has.
func (w *Write) whyFewer(db *gorm.DB, from []reflect.Value) error {
	stmt := db.Statement
	if from == nil && db.RowsAffected > 0 && w.compares() {
		// It is not known which rows were written, and those have new versions now.
		return w.staleError(stmt, nil).Err()
	}
	var absent []*Row
	for i := range w.rows {
		if row := &w.rows[i]; (from == nil || !from[i].IsValid()) && !row.twin {
			absent = append(absent, row)
		}
	}
	all, err := w.whyAbsent(db, absent)
	if err != nil {
		return w.unlooked(stmt, absent[0], err)
	}
	return joined(all)
}

// whyAbsent returns why each of these rows was not written.
func (w *Write) whyAbsent(db *gorm.DB, absent []*Row) ([]error, error) {
	keys := make([][]any, len(absent))
	for i, row := range absent {
		keys[i] = row.Key
	}
	found, err := w.look(db, keys)
	if err != nil {
		return nil, err
	}
	var all []error
	for i, row := range absent {
		if err := w.why(db, row, found[i]); err != nil {
			all = append(all, err)
		}
	}
	return all, nil
}

// why returns why row was not written, judging by the row as it is now.
func (w *Write) why(db *gorm.DB, row *Row, now seen) error {
	stmt, current := db.Statement, now.Value
	if now.deleted {
		current = reflect.Value{}
	}
	if w.fence.guards() {
		if err := w.fence.why(w, stmt, row, current); err != nil {
			return err
		}
	}
	switch {
	case !w.compares():
		return nil
	case now.deleted && w.where.mustWrite && w.isNew(row):
		return w.missing(stmt, row.Key, w.version.Any(w.version.Read(now.Value)))
	case !current.IsValid() && w.where.mustWrite && w.isNew(row) && statement.InSave():
		return w.insertInstead(db)
	case !current.IsValid() && !w.version.checked && w.intent.columns() == nil && !statement.InSave():
		return nil
	case !current.IsValid():
		e := w.stale(stmt, row, nil, true)
		e.Soft = now.deleted
		return e.Err()
	}
	for i, g := range w.guards() {
		if i > 0 && g != nil {
			if err := g.why(w, stmt, row, current); err != nil {
				return err
			}
		}
	}
	if w.version.checked && !w.where.filtered {
		e := w.stale(stmt, row, nil, false)
		e.Actual, e.Cause = w.version.Any(w.version.Read(current)), errNotWritten
		return e.Err()
	}
	if w.where.mustWrite && statement.InSave() {
		return w.conditionsOf(stmt, row.Key)
	}
	return nil
}

// conditionsOf is the error of a save whose row exists, but does not meet the caller's own conditions.
func (p *plan) conditionsOf(stmt *gorm.Statement, key []any) error {
	return fmt.Errorf("gormlock: %s: nothing was saved, the row does not meet the conditions of this Save: %w", p.rowName(stmt, key), gorm.ErrRecordNotFound)
}

// whyNoRows returns why a statement without a key, whose caller named the version, wrote nothing.
func (w *Write) whyNoRows(db *gorm.DB) error {
	if w.fence.guards() {
		if err := w.whyFencedMany(db); err != nil || !w.compares() {
			return err
		}
	}
	stmt := db.Statement
	where, _ := stmt.Clauses["WHERE"].Expression.(clause.Where)
	found, err := w.lookWhere(db, w.columnsToLookAt(), func(q *gorm.DB) *gorm.DB { return q.Clauses(where).Limit(2) })
	e := w.staleError(stmt, nil)
	if err != nil {
		return errors.Join(e.Err(), err)
	}
	if len(found) == 1 {
		one := Row{Expected: w.single[0].Expected}
		one.Key, _ = statement.KeyOf(stmt, w.model.Schema, found[0])
		one.name = statement.KeyName(one.Key)
		e = w.staleError(stmt, &one)
		e.Own = w.isOwn(stmt, &one)
		if w.version.is() {
			e.Actual = w.version.Any(w.version.Read(found[0]))
		}
	}
	e.Deleted = len(found) == 0
	if unchanged := w.intent.columns(); unchanged != nil {
		e.Columns = unchanged.names
	}
	return e.Err()
}
