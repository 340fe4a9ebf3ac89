package guard

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// judge finds out why rows were not written.
type judge struct {
	answer
	inserted bool // Save found no row and inserted one
	dry      bool // nothing is sent, so the structs stay as they are
}

// serializationFailure turns 40001 in a checked write into the error of a stale row, because another transaction has changed the row. It also names
// the row of a touch that accepts any version, such as a root that is moved by its key.
func (j *judge) serializationFailure(db *gorm.DB) {
	if !j.built.any || !j.compares() && !j.intent.Touches() || sqlstate.Of(db.Error) != sqlstate.SerializationFailure {
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
	if !j.intent.Touches() || !j.version.is() || !j.version.IsInteger() || len(j.rows) == 0 || sqlstate.Of(db.Error) != sqlstate.NumericValueOutOfRange {
		return false
	}
	err := fmt.Errorf("gormlock: %s: its version is %s: %w",
		j.rowName(db.Statement, j.named(db.Statement, &j.rows[0]).Key), j.version.AtLargest(), db.Error)
	db.Error = nil
	fault.Add(db, err)
	return true
}

// unlooked is the error of a row that was not written, if reading the reason failed.
func (j *judge) unlooked(stmt *gorm.Statement, row *Row, err error) error {
	if j.compares() {
		return errors.Join(j.staleError(stmt, row).Err(), err)
	}
	return fmt.Errorf("gormlock: %s was not written, and the reason could not be read: %w", j.rowName(stmt, j.named(stmt, row).Key), err)
}

// whyNone returns why a statement about one row wrote none. It returns nil if only the caller's conditions did not hold.
func (j *judge) whyNone(db *gorm.DB) error {
	if len(j.rows) == 0 {
		if !j.decides() {
			return nil
		}
		return j.whyNoRows(db)
	}
	row := j.named(db.Statement, &j.rows[0])
	found, err := j.look(db, [][]any{row.Key})
	if err != nil {
		return j.unlooked(db.Statement, row, err)
	}
	if err := j.why(db, row, found[0]); err != nil {
		return err
	}
	if j.mayMeanMore() && !found[0].IsValid() {
		return fmt.Errorf("gormlock: %s: there is no such row, and a zero is a part of its key: to write all rows with the other parts, name them by Where",
			j.rowName(db.Statement, row.Key))
	}
	return j.reused(db.Statement)
}

// mayMeanMore reports whether the caller may have meant several rows by a key with a zero part, as GORM understands it, and nothing else says that
// the row must exist.
func (j *judge) mayMeanMore() bool {
	return j.where.partialKey && !j.batch && !j.version.is() && !j.unchanged().guards() && !statement.InSave()
}

// whyFewer returns why a batch wrote fewer rows than it has.
func (j *judge) whyFewer(db *gorm.DB, from []reflect.Value) error {
	stmt := db.Statement
	if from == nil && db.RowsAffected > 0 && j.compares() {
		// It is not known which rows were written, and the written ones have new versions now.
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
	if len(all) == 0 && db.RowsAffected == 0 {
		return j.reused(stmt)
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

// why returns why row was not written, from the row as it is now.
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
	case !current.IsValid() && !j.version.checked && !j.unchanged().guards() && !statement.InSave():
		return nil
	case !current.IsValid() && j.version.checked && !j.version.given && j.version.IsUnread(row.held):
		return j.missingRow(stmt, row.Key)
	case !current.IsValid():
		e := j.stale(stmt, row, nil, true)
		e.Soft, e.Hidden = now.deleted, j.mayBeHidden()
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
		actual := j.version.Read(current)
		e.Actual, e.Cause = j.version.Any(actual), j.whyAsItIs(stmt, actual)
		return e.Err()
	}
	switch {
	case !j.where.mustWrite || !statement.InSave():
		return nil
	case !j.where.filtered:
		return fmt.Errorf("gormlock: %s: %w", j.rowName(stmt, row.Key), errNotWritten)
	}
	return j.conditionsOf(stmt, row.Key)
}

// whyAsItIs is the reason if a row at the right version was not written, and the caller has no conditions.
func (j *judge) whyAsItIs(stmt *gorm.Statement, actual column.Value) error {
	if conflict, upserts := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict); upserts && !j.isOnKey(conflict) {
		return errMetAnother
	}
	return j.version.notWritten(actual)
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
	if j.built.nothing || j.built.full {
		as := func(q *gorm.DB) *gorm.DB {
			return q.Clauses(clause.Where{Exprs: beside(asExpected{&j.draft}, where.Exprs)}).Limit(1)
		}
		found, err := j.lookWhere(db, j.columnsToLookAt(), as)
		if err == nil && len(found) > 0 && j.built.full {
			err = j.fullAt(stmt, &j.single[0])
		}
		if err != nil || len(found) > 0 {
			return err
		}
	}
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
			actual := j.version.Read(found[0])
			e.Actual = j.version.Any(actual)
			if j.version.checked && j.version.accepts(&one, actual) && !j.unchanged().guards() {
				e.Cause = j.version.notWritten(actual)
			}
		}
	}
	e.Deleted = len(found) == 0
	if unchanged := j.unchanged(); unchanged.guards() {
		e.Columns = unchanged.Names
	}
	return e.Err()
}

// asExpected is the condition that a row is as the guards require.
type asExpected struct{ draft *draft }

// Build writes it.
func (e asExpected) Build(to clause.Builder) {
	b := builderOf(to, e.draft)
	b.Text("1=1")
	for _, g := range e.draft.guards() {
		if g != nil {
			g.hold(b)
		}
	}
}

// mayBeHidden reports whether rows of the model may be hidden by anything but GORM's own soft delete, such as a tenant.
func (p *plan) mayBeHidden() bool {
	return slices.ContainsFunc(p.model.Schema.QueryClauses, func(c clause.Interface) bool {
		_, soft := c.(gorm.SoftDeleteQueryClause)
		return !soft
	})
}

// insertInstead stores the new struct with a plain INSERT. GORM would use an upsert, which would overwrite a row that another writer creates in
// between. Associations and hooks are those of the update, as in GORM; settings and clauses are the caller's.
func (j *judge) insertInstead(db *gorm.DB) error {
	tx := db.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Omit(append(slices.Clone(j.omitted(db.Statement)), clause.Associations)...)
	if i := j.intent; i.AsksFence() {
		tx.Statement.Clauses[asked.ClauseName] = clause.Clause{Expression: &asked.Intent{Tokens: i.Tokens, IgnoreFence: i.IgnoreFence}}
	}
	statement.SameTable(tx.Statement, db.Statement)
	statement.InsertAs(tx.Statement, db.Statement)
	row := structOf(j.rows[0].Struct)
	if j.version.is() { // GORM may have set a version for the update
		j.version.Write(row, j.rows[0].held)
	}
	if err := tx.Create(row.Addr().Interface()).Error; err != nil {
		return err
	}
	j.inserted, db.RowsAffected = true, 1
	return nil
}

// whyRefused returns which structs of an upsert were not written, or were inserted because their row was gone.
func (j *judge) whyRefused(db *gorm.DB, from []reflect.Value) error {
	v, u, stmt := &j.version, j.upsert, db.Statement
	anew, err := j.storedAll(db, from)
	if err != nil {
		return err
	}
	var all []error
	var absent []*Row
	for i := range j.rows {
		row, r := &j.rows[i], u.rows[i]
		wrote := from[i].IsValid()
		switch {
		case anew[i]:
			all = append(all, j.storedAnew(stmt, row))
		case !r.loaded && !r.unread, u.skips && !wrote:
		case u.skips: // the version was not returned
			all = append(all, j.stale(stmt, row, nil, true).Err())
		case wrote && r.loaded && v.isBack(row, v.Read(from[i])):
			all = append(all, j.kept(stmt, row))
		case !wrote:
			absent = append(absent, row)
		}
	}
	if len(absent) > 0 {
		whys, err := j.whyAbsent(db, absent)
		if err != nil {
			return errors.Join(j.staleError(stmt, absent[0]).Err(), err)
		}
		all = append(all, whys...)
	}
	return joined(all)
}

// structOf returns the struct of a row as a value that can be set. It is a copy if the caller's struct cannot be set.
func structOf(row reflect.Value) reflect.Value {
	if row.CanAddr() {
		return row
	}
	own := reflect.New(row.Type()).Elem()
	own.Set(row)
	return own
}
