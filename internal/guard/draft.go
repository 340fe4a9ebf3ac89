package guard

import (
	"cmp"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// draft is a statement that is being built: its plan, what the building has shown, and what it returns.
type draft struct {
	plan
	built     built
	returning *returning // the columns to return; nil: none
}

// compares reports whether a row is only written as it was read.
func (d *draft) compares() bool {
	return d.version.checked && !d.built.unchecked || d.unchanged().guards() || d.where.mustWrite
}

// decides reports whether writing no row can be a conflict.
func (d *draft) decides() bool { return d.compares() || d.fence.guards() }

// built is what the building of the statement has shown.
type built struct {
	assigned
	armed     bool  // the builders take part
	any       bool  // something was built
	holds     bool  // the conditions of the guards were built
	conflicts bool  // the ON CONFLICT of an upsert was built
	marked    bool  // the server stores whether it found the row
	asked     bool  // the server was asked what the statement found
	unchecked bool  // the version is not compared after all: see isLenient
	looks     bool  // it fails if a version has not moved
	proposed  int32 // rows of a create
	held      int32 // the place, among the sent values, of the version that the row must have; 0: it is not sent
}

// assigned is what the SET clause has shown.
type assigned struct {
	set       bool // there is a SET
	bumps     bool // the version moves
	nothing   bool // nothing is SET, so no row is written
	full      bool // no row is written either, because the row would be at the largest version
	named     bool // the SET, or the caller, names the version
	timesOnly bool // only times that GORM adds to every update are SET
	unheld    bool // a SET value differs from what the structs hold, and is not returned
	rekeys    bool // a part of the key is SET to a value that the structs do not hold
	hides     bool // the SET may be a soft delete
}

// arm makes the builders take part in the statement.
func (d *draft) arm(stmt *gorm.Statement) {
	d.built.armed = true
	if len(d.rows) > 0 && d.readsBack(stmt) && !returns(stmt) && statement.AsksForRows(stmt) {
		d.want(d.model.Schema.PrimaryFields...)
	}
	if d.returning.wanted() || d.returning != nil && len(d.returning.watched) > 0 {
		d.returning.install(d, stmt)
	}
}

// weigh decides from the SET clause whether the version moves. It does not move if only unversioned columns
// change; the time that GORM adds to every update does not count.
func (d *draft) weigh(set clause.Set) {
	others, unversioned, times, named := 0, 0, 0, false
	for i := range set {
		name := set[i].Column.Name
		if d.version.owns(name) {
			named = true
			continue
		}
		if others++; !d.model.Weighs {
			continue
		}
		if d.model.Unversioned[name] {
			unversioned++
		} else if field := d.model.Schema.FieldsByDBName[name]; field != nil && field.AutoUpdateTime > 0 {
			times++
		}
	}
	moves := others > 0 || d.version.forced || d.where.mustWrite
	d.built.nothing = !moves
	d.built.named = named || d.version.given
	d.built.timesOnly = others > 0 && times == others
	d.built.bumps = moves && !d.intent.Preserves() && (unversioned == 0 || unversioned+times < others)
}

// isLenient reports whether the struct was not read from its row, but the statement only sets the time of the update. Association mode sends such
// statements without a version, so they are not refused.
func (d *draft) isLenient() bool {
	return !d.batch && !d.where.mustWrite && !d.version.forced && !d.version.given && len(d.rows) == 1 && !d.version.Loaded(d.rows[0].Expected)
}

// prepareCreate decides what a create does to existing rows.
func (d *draft) prepareCreate(stmt *gorm.Statement) error {
	if d.intent.Compares() {
		return fmt.Errorf("gormlock: %s: a create has no version to compare: ExpectVersion, IfUnchanged and IfMatch are for updates and deletes", d.model.Schema.Name)
	}
	u := d.upsert
	if statement.HasUpsert(stmt) {
		d.insertNew(stmt)
	}
	u.updates = statement.HasUpsert(stmt)
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	u.skips, u.whole = conflict.DoNothing, conflict.UpdateAll
	if u.child && u.skips { // it may be new, whatever is saved with it
		u.strict, u.saves = false, false
		d.skipByKey(stmt, conflict)
	}
	if err := cmp.Or(d.refuseIgnore(stmt), d.fitsUpsert(stmt, conflict)); err != nil {
		return err
	}
	if !d.version.is() {
		if u.updates {
			d.op = OpUpsert
		}
		if u.updates && (u.saves || d.isOnKey(conflict)) && d.fence != nil {
			return d.refuseWithoutKeys(stmt)
		}
		return nil
	}
	if !u.updates && !u.skips {
		d.wantStored(stmt)
		return nil
	}
	if u.updates || u.child {
		if !returns(stmt) && !dialect.Of(stmt.DB).IsMySQL() {
			return fmt.Errorf("gormlock: %s: not executed, the server is not asked which rows an upsert wrote, so rows that others deleted would be stored again: open the database without WithoutReturning in postgres.Config, or save the structs one by one", d.model.Schema.Name)
		}
		d.op = OpUpsert
	}
	if statement.ComputesColumn(conflict.DoUpdates, d.version.Field.DBName) {
		return fmt.Errorf("gormlock: %s.%s: an upsert cannot assign the version, which moves by itself: leave it out", d.model.Schema.Name, d.version.Field.Name)
	}
	if !u.skips && !d.intent.Ignores() && statement.IsInMaps(stmt.Dest, d.version.Field) {
		return fmt.Errorf("gormlock: %s.%s: an upsert of maps cannot compare the version that they name: write a struct, leave it out, or use IgnoreVersion", d.model.Schema.Name, d.version.Field.Name)
	}
	d.where.filtered = u.skips || len(conflict.Where.Exprs) > 0
	u.links = u.child && u.updates && !conflict.UpdateAll
	if d.intent.Ignores() {
		u.strict, u.exist = false, u.strict && (returns(stmt) || dialect.Of(stmt.DB).IsMySQL())
	}
	if err := d.sortStructs(stmt, d.isOnKey(conflict)); err != nil {
		return err
	}
	d.version.checked = slices.ContainsFunc(u.rows, func(r upsertRow) bool { return r.loaded || r.unread && !u.skips })
	if d.intent.Preserves() && d.version.checked {
		return fmt.Errorf("gormlock: %s: PreserveVersion on an upsert of rows that were read: update them instead", stmt.Table)
	}
	if d.version.IsSystem() && d.version.checked && !u.skips {
		return fmt.Errorf("gormlock: %s: an upsert cannot compare xmin: update the rows, or use IgnoreVersion", stmt.Table)
	}
	d.readHeld(stmt, conflict)
	d.wantRows(stmt)
	return nil
}

// marksFound makes an update report that it found its row: MariaDB and MySQL count only rows that change.
func (d *draft) marksFound(stmt *gorm.Statement) bool {
	if !dialect.Of(stmt.DB).CountsChanged() || d.batch || len(d.rows) != 1 || d.version.is() && d.built.bumps {
		return false
	}
	return d.version.checked || d.unchanged().guards() || d.where.mustWrite || d.fence.guards()
}

// mayLeaveOut is leavesOut before the statement is built.
func (d *draft) mayLeaveOut(stmt *gorm.Statement) bool {
	return d.fence.guards() && (d.op == OpDelete || !statement.IsPostgres(stmt.DB)) && (d.memory.Count == 0 || !d.hasKey(d.memory.Row(0)))
}

// leavesOut reports whether a statement about many rows can skip those with a later token, because no assignment fails on them. Then it must be
// checked whether there are such rows.
func (d *draft) leavesOut(stmt *gorm.Statement) bool {
	return d.fence.guards() && d.isBulk() && (!d.built.set || !statement.IsPostgres(stmt.DB))
}
