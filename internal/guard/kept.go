package guard

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// A trigger before an update may return OLD, or reset the version. Then the row stays as it was, but the server counts it as written. So the
// statement itself checks the version that the row has afterwards.

// signOfKept is in the server's error for such a row: it is not a boolean, so a cast fails.
const (
	signOfKept = "gormlock"
	orFail     = " THEN '1' ELSE '" + signOfKept + "' END::bool"
)

// looksAfter reports whether the version of a row shows that it was written.
func (d *draft) looksAfter() bool {
	v := &d.version
	return v.is() && v.checked && v.choice == nil && d.built.bumps && !d.built.unchecked && !v.IsSystem()
}

// failKept writes an expression that fails if the version of a row has not moved. Nothing reads its value, so it costs no scan. If the rows of a
// batch have several versions, these are compared after they are returned.
func (b builder) failKept(before, behind string) {
	d := b.draft
	v := &d.version
	sent := d.built.held > 0
	if d.hasVersions() || !d.built.holds || !d.looksAfter() || v.IsTemporal() && !sent || !statement.IsPostgres(b.DB) || !returns(b.Statement) {
		return
	}
	had := "0"
	if sent {
		had = "$" + strconv.Itoa(int(d.built.held))
	}
	d.built.looks = true
	switch text := d.model.In(b.Statement); {
	case v.mayStay(b.Statement, d):
		b.Text(before, "CASE WHEN ", text.Held, " IS NOT NULL", orFail, behind)
	case v.IsTemporal(): // a trigger may set another time, such as the transaction's
		b.Text(before, "CASE WHEN ", text.Held, "<>", had, " OR ", text.Held, "=now()", orFail, behind)
	default:
		b.Text(before, text.Larger, had, orFail, behind)
	}
}

// mayStay reports whether a trigger may give a row the version that it already has: now() does not change within a transaction.
func (v *versionGuard) mayStay(stmt *gorm.Statement, d *draft) bool {
	return v.IsTemporal() && hasWrite(stmt, d.model, func(*Write) bool { return true })
}

// buildReturning makes a statement that returns its row fail if the row was kept as it was.
func (b builder) buildReturning(c clause.Clause) bool {
	if !b.draft.built.set {
		return false
	}
	plainly(b.rest, c, b.Statement)
	b.failKept(",", " AS gormlock_moved")
	return true
}

// isLast reports whether no clause follows this one.
func isLast(stmt *gorm.Statement, name string) bool {
	at := slices.Index(stmt.BuildClauses, name)
	return at >= 0 && !slices.ContainsFunc(stmt.BuildClauses[at+1:], func(behind string) bool {
		_, has := stmt.Clauses[behind]
		return has
	})
}

// hasVersions reports whether the rows of a batch must have several versions.
func (d *draft) hasVersions() bool {
	return d.batch && slices.ContainsFunc(d.rows, func(row Row) bool { return !row.Expected.Equal(d.rows[0].Expected) })
}

// watchVersion returns the versions of such a batch too.
func (d *draft) watchVersion(stmt *gorm.Statement) {
	v := &d.version
	if v.is() && v.checked && !v.IsSystem() && v.Field.Readable && updates(stmt) && (d.hasVersions() || !statement.IsPostgres(stmt.DB)) {
		d.returning.watched = append(d.returning.watched, v.Field)
	}
}

// whyKept is the error of a row that was returned at its old version.
func (w *Write) whyKept(db *gorm.DB, row *Row, now reflect.Value) error {
	v := &w.version
	if !now.IsValid() || w.built.looks || !w.looksAfter() || !slices.Contains(w.returning.columns(), v.Field) {
		return nil
	}
	if is := v.Read(now); v.hasMoved(row, is) || v.mayStay(db.Statement, &w.draft) && !v.isBack(row, is) {
		return nil
	}
	err := w.kept(db.Statement, row)
	journal.Doom(db, err)
	return err
}

// hasMoved reports whether a row at this version was written. A trigger may give it an earlier time, such as the transaction's.
func (v *versionGuard) hasMoved(row *Row, now column.Value) bool {
	if v.IsTemporal() {
		return !v.isGone(now) && !now.Equal(v.Stored(row.Expected))
	}
	return !now.Null && now.N > row.Expected.N
}

// isBack reports whether a row at this version has lost its own version.
func (v *versionGuard) isBack(row *Row, now column.Value) bool {
	if v.IsTemporal() {
		return v.isGone(now)
	}
	return !v.IsSystem() && (now.Null || now.N < row.Expected.N)
}

// isGone reports whether a row no longer has a time.
func (v *versionGuard) isGone(now column.Value) bool { return now.Null || now.Time().IsZero() }

// explainKept turns the server's error for a row that was kept into one that says so.
func (w *Write) explainKept(db *gorm.DB) bool {
	if !w.built.looks || sqlstate.IsWithin(db.Error) {
		return false
	}
	switch {
	case sqlstate.Of(db.Error) == sqlstate.FeatureNotSupported:
		fault.Add(db, fmt.Errorf("gormlock: %s: nothing was written: if there is a rule ON UPDATE DO INSTEAD, nothing says if it has written a row: add RETURNING to the rule, "+
			"use a trigger in its place, or open the database with WithoutReturning in postgres.Config", statement.TableName(db.Statement)))
		return true
	case sqlstate.Of(db.Error) != sqlstate.InvalidTextRepresentation || !strings.Contains(db.Error.Error(), `"`+signOfKept+`"`):
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
	why := "a trigger returned OLD or set the version back: let it return NEW, and leave the version alone"
	if p.version.IsTemporal() {
		why = "the column is coarser than its field, which gormlock.Check finds, or " + why
	}
	return fmt.Errorf("gormlock: %s: nothing was written, because the row would still be at version %s: %s", p.rowName(stmt, key), fault.Version(p.version.Any(row.Expected)), why)
}
