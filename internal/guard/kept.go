package guard

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// A trigger before an update may return OLD, or set the version back. Then the row stays as it was, and the server counts it as written. So
// the statement itself looks at the version that the row has behind it.

// looksBehind reports whether the version of a row shows that it was written.
func (d *draft) looksBehind() bool {
	v := &d.version
	return v.is() && v.checked && v.choice == nil && d.built.bumps && !d.built.unchecked && !v.IsSystem()
}

// mustMove writes, behind the conditions, what fails where the version has not moved. Nothing is read, so it costs no scan.
func (b builder) mustMove() {
	d := b.draft
	if !d.looksBehind() || !statement.IsPostgres(b.DB) || !returns(b.Statement) || !isLast(b.Statement, "WHERE") {
		return
	}
	had := "0"
	switch {
	case d.built.held > 0:
		had = "$" + strconv.Itoa(int(d.built.held))
	case d.version.IsTemporal():
		return // it had none
	}
	d.built.behind = true
	b.Text(d.model.In(b.Statement).Moved, had, " IS TRUE)::int)")
}

// isLast reports whether no clause stands behind this one.
func isLast(stmt *gorm.Statement, name string) bool {
	at := slices.Index(stmt.BuildClauses, name)
	return at >= 0 && !slices.ContainsFunc(stmt.BuildClauses[at+1:], func(behind string) bool {
		_, has := stmt.Clauses[behind]
		return has
	})
}

// watchVersion returns the version too, if rows come back anyway.
func (d *draft) watchVersion() {
	if v := &d.version; v.is() && v.checked && !v.IsSystem() && v.Field.Readable {
		d.returning.watched = append(d.returning.watched, v.Field)
	}
}

// whyKept is the error of a row that came back at the version it had.
func (w *Write) whyKept(db *gorm.DB, row *Row, now reflect.Value) error {
	v := &w.version
	if !now.IsValid() || !w.looksBehind() || !slices.Contains(w.returning.columns(), v.Field) {
		return nil
	}
	if v.hasMoved(row, v.Read(now)) {
		return nil
	}
	err := w.kept(db.Statement, row)
	journal.Doom(db, err)
	return err
}

// hasMoved reports whether a row at this version was written.
func (v *versionGuard) hasMoved(row *Row, now column.Value) bool {
	if v.IsTemporal() {
		return !now.Null && now.Time().After(row.Expected.Time())
	}
	return !now.Null && now.N > row.Expected.N
}

// isBack reports whether a row at this version has lost its own.
func (v *versionGuard) isBack(row *Row, now column.Value) bool {
	if v.IsTemporal() {
		return now.Null || now.Time().Before(row.Expected.Time())
	}
	return !v.IsSystem() && (now.Null || now.N < row.Expected.N)
}

// explainKept turns the server's error for a row that was kept into one that says so.
func (w *Write) explainKept(db *gorm.DB) bool {
	switch state := sqlstate.Of(db.Error); {
	case !w.built.behind:
		return false
	case state == sqlstate.FeatureNotSupported:
		fault.Add(db, fmt.Errorf("gormlock: %s: nothing was written: if it has a rule ON UPDATE DO INSTEAD, add RETURNING to the rule, which says if a row was written, "+
			"or give the model the table itself", statement.TableName(db.Statement)))
		return true
	case state != sqlstate.InvalidArgumentForLogarithm:
		return false
	}
	row := &w.single[0]
	if len(w.rows) > 0 {
		row = &w.rows[0]
	}
	err := w.kept(db.Statement, row)
	db.Error = nil
	journal.Doom(db, err)
	fault.Add(db, err)
	return true
}

func (p *plan) storedAnew(stmt *gorm.Statement, row *Row) error {
	e := p.stale(stmt, row, nil, true)
	e.Cause = errStoredAnew
	return e.Err()
}

func (p *plan) kept(stmt *gorm.Statement, row *Row) error {
	var key []any
	if row.Struct.IsValid() {
		key = p.named(stmt, row).Key
	}
	return fmt.Errorf("gormlock: %s: nothing was written: a BEFORE UPDATE trigger left the row at version %v, because it returned OLD or set the version back: "+
		"let it return NEW, and leave the version alone", p.rowName(stmt, key), p.version.Any(row.Expected))
}
