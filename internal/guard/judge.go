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

// judge finds out why rows were not written.
type judge struct {
	answer
	inserted bool // Save found no row and made one
}

// serializationFailure turns 40001 in a checked write into the error of a stale row: another transaction has changed it. It
// also names the row of a touch that accepts any version, such as a root that is moved by its key.
func (j *judge) serializationFailure(db *gorm.DB) {
	if !j.built.any || !j.compares() && !j.intent.touches() || sqlstate.Of(db.Error) != sqlstate.SerializationFailure {
		return
	}
	stale := j.staleError(db.Statement, nil)
	if len(j.rows) == 1 {
		stale = j.staleError(db.Statement, &j.rows[0])
	}
	stale.Cause = db.Error
	err := stale.Err()
	db.Error = nil
	install.Of(db).TellRefused(db.Statement.Context, err)
	fault.Add(db, err)
}

// versionIsFull turns an "out of range" error of a touch into one about the version, because a touch increments nothing
// else.
func (j *judge) versionIsFull(db *gorm.DB) bool {
	if !j.intent.touches() || !j.version.is() || !j.version.IsInteger() || len(j.rows) == 0 || sqlstate.Of(db.Error) != sqlstate.NumericValueOutOfRange {
		return false
	}
	err := fmt.Errorf("gormlock: %s: its version is the largest its column holds: give the column %s a larger type: %w",
		j.rowName(db.Statement, j.named(db.Statement, &j.rows[0]).Key), j.version.Field.DBName, db.Error)
	db.Error = nil
	fault.Add(db, err)
	return true
}

func (p *plan) staleError(stmt *gorm.Statement, row *Row) *fault.Stale {
	e := &fault.Stale{Table: p.tableName(stmt), Op: p.op.String(), PrimaryKey: map[string]any{}}
	expected := p.single[0].Expected
	if row != nil {
		p.named(stmt, row)
		expected = row.Expected
		for i, field := range p.model.Schema.PrimaryFields {
			e.PrimaryKey[field.DBName] = row.Key[i]
			e.Keys = append(e.Keys, field.DBName)
		}
	}
	if p.version.is() && p.version.checked && (row != nil || !p.batch) {
		e.Expected = p.version.Any(expected)
		e.Given = p.version.given
		if p.version.choice != nil {
			e.Expected = p.version.choice.String()
		}
	}
	return e
}

func (p *plan) stale(stmt *gorm.Statement, row *Row, actual any, deleted bool) *fault.Stale {
	e := p.staleError(stmt, row)
	e.Actual, e.Deleted = actual, deleted
	e.Own = p.isOwn(stmt, row)
	return e
}

// isOwn reports whether the transaction itself moved the row from the expected version, or deleted the row at that version.
// If a rival moved the row before, another attempt cures the conflict, whatever the transaction did to the row afterwards.
func (p *plan) isOwn(stmt *gorm.Statement, row *Row) bool {
	return row != nil && p.version.is() && p.version.checked && p.version.choice == nil && hasLeft(stmt, p.model, row.name, row.Expected, true)
}

// unlooked is the error of a row that was not written, if reading the reason failed.
func (j *judge) unlooked(stmt *gorm.Statement, row *Row, err error) error {
	if j.compares() {
		return errors.Join(j.staleError(stmt, row).Err(), err)
	}
	return fmt.Errorf("gormlock: %s was not written, and the reason could not be read: %w", j.rowName(stmt, j.named(stmt, row).Key), err)
}

// tableName is the name of the table in messages. It is never the alias that a statement has for the table.
func (p *plan) tableName(stmt *gorm.Statement) string {
	if stmt.TableExpr != nil {
		return p.model.Table
	}
	return stmt.Table
}

func (p *plan) rowName(stmt *gorm.Statement, key []any) string {
	values, columns := map[string]any{}, []string{}
	for i, field := range p.model.Schema.PrimaryFields {
		values[field.DBName] = key[i]
		columns = append(columns, field.DBName)
	}
	return fault.Row(p.tableName(stmt), columns, values)
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
func (j *judge) whyNone(db *gorm.DB) error {
	if len(j.rows) == 0 {
		return j.whyNoRows(db)
	}
	row := j.named(db.Statement, &j.rows[0])
	found, err := j.look(db, [][]any{row.Key})
	if err != nil {
		return j.unlooked(db.Statement, row, err)
	}
	return j.why(db, row, found[0])
}

// whyFewer returns why a batch wrote fewer rows than it has.
func (j *judge) whyFewer(db *gorm.DB, from []reflect.Value) error {
	stmt := db.Statement
	if from == nil && db.RowsAffected > 0 && j.compares() {
		// It is not known which rows were written, and those have new versions now.
		return j.staleError(stmt, nil).Err()
	}
	var absent []*Row
	for i := range j.rows {
		if row := &j.rows[i]; (from == nil || !from[i].IsValid()) && !row.twin {
			absent = append(absent, row)
		}
	}
	all, err := j.whyAbsent(db, absent)
	if err != nil {
		return j.unlooked(stmt, absent[0], err)
	}
	return joined(all)
}

// whyAbsent returns why each of these rows was not written.
func (j *judge) whyAbsent(db *gorm.DB, absent []*Row) ([]error, error) {
	keys := make([][]any, len(absent))
	for i, row := range absent {
		keys[i] = row.Key
	}
	found, err := j.look(db, keys)
	if err != nil {
		return nil, err
	}
	var all []error
	for i, row := range absent {
		if err := j.why(db, row, found[i]); err != nil {
			all = append(all, err)
		}
	}
	return all, nil
}

// why returns why row was not written, judging by the row as it is now.
func (j *judge) why(db *gorm.DB, row *Row, now seen) error {
	stmt, current := db.Statement, now.Value
	if now.deleted {
		current = reflect.Value{}
	}
	if j.fence.guards() {
		if err := j.fence.why(j, stmt, row, current); err != nil {
			return err
		}
	}
	switch {
	case !j.compares():
		return nil
	case now.deleted && j.where.mustWrite && j.isNew(row):
		return j.missing(stmt, row.Key, j.version.Any(j.version.Read(now.Value)))
	case !current.IsValid() && j.where.mustWrite && j.isNew(row) && statement.InSave():
		return j.insertInstead(db)
	case !current.IsValid() && !j.version.checked && j.intent.columns() == nil && !statement.InSave():
		return nil
	case !current.IsValid():
		e := j.stale(stmt, row, nil, true)
		e.Soft = now.deleted
		return e.Err()
	}
	for i, g := range j.guards() {
		if i > 0 && g != nil {
			if err := g.why(j, stmt, row, current); err != nil {
				return err
			}
		}
	}
	if j.version.checked && !j.where.filtered {
		e := j.stale(stmt, row, nil, false)
		e.Actual, e.Cause = j.version.Any(j.version.Read(current)), errNotWritten
		return e.Err()
	}
	if j.where.mustWrite && statement.InSave() {
		return j.conditionsOf(stmt, row.Key)
	}
	return nil
}

// conditionsOf is the error of a save whose row exists, but does not meet the caller's own conditions.
func (p *plan) conditionsOf(stmt *gorm.Statement, key []any) error {
	return fmt.Errorf("gormlock: %s: nothing was saved, the row does not meet the conditions of this Save: %w", p.rowName(stmt, key), gorm.ErrRecordNotFound)
}

// whyNoRows returns why a statement without a key, whose caller named the version, wrote nothing.
func (j *judge) whyNoRows(db *gorm.DB) error {
	if j.fence.guards() {
		if err := j.whyFencedMany(db); err != nil || !j.compares() {
			return err
		}
	}
	stmt := db.Statement
	where, _ := stmt.Clauses["WHERE"].Expression.(clause.Where)
	found, err := j.lookWhere(db, j.columnsToLookAt(), func(q *gorm.DB) *gorm.DB { return q.Clauses(where).Limit(2) })
	e := j.staleError(stmt, nil)
	if err != nil {
		return errors.Join(e.Err(), err)
	}
	if len(found) == 1 {
		one := Row{Expected: j.single[0].Expected}
		one.Key, _ = statement.KeyOf(stmt, j.model.Schema, found[0])
		one.name = statement.KeyName(one.Key)
		e = j.staleError(stmt, &one)
		e.Own = j.isOwn(stmt, &one)
		if j.version.is() {
			e.Actual = j.version.Any(j.version.Read(found[0]))
		}
	}
	e.Deleted = len(found) == 0
	if unchanged := j.intent.columns(); unchanged != nil {
		e.Columns = unchanged.names
	}
	return e.Err()
}
