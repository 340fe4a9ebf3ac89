package gormlock

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// versionUpsert is a create that updates the rows it finds.
type versionUpsert struct {
	strict bool // Save of a slice, or associations saved whole: a struct with a key stands for a row that was read
	child  bool // made by GORM to save an association

	links    bool // only the foreign keys of children are set
	skips    bool // rows that are there are left alone: what a struct belongs to, or shares
	moves    []bool
	all      bool // every column is updated: the struct is the row
	guarded  []bool
	unloaded []bool
}

// prepareUpsert sorts the structs: those that stand for a row they were read from are checked, the others bump.
func (w *versionWrite) prepareUpsert(stmt *gorm.Statement) error {
	column, u, now := w.model.column, w.upsert, stmt.NowFunc()
	w.expand()
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	if computesColumn(conflict.DoUpdates, column.field.DBName) {
		return fmt.Errorf("gormlock: %s.%s: an upsert cannot assign the version, it moves by itself: leave it out", w.model.schema.Name, column.field.Name)
	}
	u.all = conflict.UpdateAll && len(stmt.Selects) == 0 && len(stmt.Omits) == 0
	u.skips = conflict.DoNothing
	w.filtered = u.skips || len(conflict.Where.Exprs) > 0
	u.links = u.child && !conflict.UpdateAll && !u.skips
	u.guarded, u.unloaded, u.moves = make([]bool, len(w.rows)), make([]bool, len(w.rows)), make([]bool, len(w.rows))
	if w.intent.ignores() {
		u.strict = false
	}
	names := map[string]int{}
	for i := range w.rows {
		row := &w.rows[i]
		row.expected = column.read(row.row)
		if row.next = row.expected; column.unset(row.expected) {
			row.next = column.first(now)
		} else if row.expected.n < 0 {
			return fmt.Errorf("gormlock: %s: version %d of a new row is negative", stmt.Table, row.expected.n)
		}
		key, complete := keyOf(stmt, w.model.schema, row.row)
		if !complete {
			continue
		}
		row.key, row.name = key, keyName(key)
		if twin, ok := names[row.name]; ok && w.rows[twin].row.CanAddr() {
			return fmt.Errorf("gormlock: %s: two elements of one upsert stand for it", w.rowName(stmt, key))
		}
		names[row.name] = i
		isLoaded := !column.unset(row.expected) || column.zeroIsLoaded() && (u.strict || u.links) && !u.skips
		u.guarded[i] = isLoaded && !w.intent.ignores()
		u.unloaded[i] = !isLoaded && u.strict
		u.moves[i] = u.links && movedHere(stmt, row.row)
		if u.guarded[i] {
			if row.next = row.expected; row.expected.null {
				row.next = version{}
			}
			if column.kind == integerVersion && row.expected.n >= column.largest {
				return fmt.Errorf("gormlock: %s: version %d is the largest its column holds", w.rowName(stmt, key), row.expected.n)
			}
		}
	}
	w.checked = slices.Contains(u.guarded, true) || slices.Contains(u.unloaded, true)
	if u.skips {
		w.checked = slices.Contains(u.guarded, true)
		return w.wantInserted(stmt)
	}
	if w.intent.preserves() && w.checked {
		return fmt.Errorf("gormlock: %s: PreserveVersion on an upsert of rows that were read: update them instead", stmt.Table)
	}
	if column.kind == systemVersion && w.checked {
		return fmt.Errorf("gormlock: %s: an upsert cannot compare xmin: update the rows, or say IgnoreVersion", stmt.Table)
	}
	w.later = column.first(now)
	for i := range w.rows {
		if next := column.next(w.rows[i].expected, now); next.time().After(w.later.time()) {
			w.later = next
		}
	}
	return w.wantInserted(stmt)
}

// wantInserted asks for what identifies the rows that were written, and what the server made of them.
func (w *versionWrite) wantInserted(stmt *gorm.Statement) error {
	column, u := w.model.column, w.upsert
	if len(w.rows) == 0 || !slices.Contains(stmt.BuildClauses, "RETURNING") || u.skips && !w.checked {
		return nil
	}
	for _, field := range stmt.Schema.FieldsWithDefaultDBValue {
		if field.Readable && !asksForRows(stmt) {
			w.want(field)
		}
	}
	w.want(w.model.schema.PrimaryFields...)
	if !u.skips {
		w.want(column.field)
	}
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	for _, field := range w.model.readable() { // what the server works out
		if computesColumn(conflict.DoUpdates, field.DBName) {
			w.want(field)
		}
	}
	if u.all {
		w.wantKept(stmt)
	}
	return nil
}

// wantKept asks for the columns that an update of all columns leaves as they are in the row, such as the time at which
// it was created: the struct is the row afterwards.
func (w *versionWrite) wantKept(stmt *gorm.Statement) {
	for _, field := range stmt.Schema.Fields {
		if field.DBName != "" && field.Readable && (field.AutoCreateTime > 0 || !field.Updatable) {
			w.want(field)
		}
	}
}

// settleUpsert compares the rows that came back with the structs: by key, and those without one in their order.
func (w *versionWrite) settleUpsert(db *gorm.DB) {
	stmt := db.Statement
	if err := w.whyFencedUpsert(db); err != nil {
		w.refuse(db, err)
		return
	}
	if len(w.rows) == 0 {
		w.keepWritten(stmt)
		return
	}
	if !w.returning.has() {
		if w.checked && int(db.RowsAffected) < len(w.rows) {
			w.refuse(db, w.staleError(stmt, nil))
			return
		}
		w.keepWritten(stmt)
		return
	}
	returned := w.returning.byKey(stmt)
	if err := w.whyRefused(db, returned); err != nil {
		w.refuse(db, err)
		return
	}
	fresh, matched := w.unmatched(stmt)
	for i := range w.rows {
		row := &w.rows[i]
		from, ok := returned[row.name]
		if row.name == "" && matched {
			from, fresh, ok = fresh[0], fresh[1:], true
		}
		if ok && row.row.CanAddr() {
			w.followUpsert(i, from)
			w.fence.follow(row.row)
		}
	}
	w.keepWritten(stmt)
}

// unmatched are the returned rows that no struct has the key of. They are those of the structs without a key, in their
// order, if there are as many.
func (w *versionWrite) unmatched(stmt *gorm.Statement) (fresh []reflect.Value, matched bool) {
	known, keyless := make(map[string]struct{}, len(w.rows)), 0
	for i := range w.rows {
		if w.rows[i].name == "" {
			keyless++
		} else {
			known[w.rows[i].name] = struct{}{}
		}
	}
	for i := range w.returning.len() {
		row := w.returning.rows.Index(i)
		key, _ := keyOf(stmt, w.model.schema, row)
		if _, ok := known[keyName(key)]; !ok {
			fresh = append(fresh, row)
		}
	}
	return fresh, len(fresh) == keyless
}

// followUpsert brings the struct to its row. A version is taken only where the struct is what the row is: it was
// inserted, it was written at the version it held, or all of it was written. Of a child whose foreign key was right
// already it is not: others may have moved the row on.
func (w *versionWrite) followUpsert(i int, from reflect.Value) {
	column, u, row := w.model.column, w.upsert, &w.rows[i]
	w.returning.give(from, row.row, column.field)
	if w.intent.preserves() && (!u.all || u.links) {
		column.write(row.row, column.unread())
		return
	}
	if u.skips {
		column.write(row.row, row.next)
		return
	}
	returned := column.read(from)
	inserted := !u.guarded[i] && returned.equal(w.inTick(row.next))
	switch {
	case column.kind == systemVersion && !u.all && !inserted:
		column.write(row.row, version{})
	case u.guarded[i] && u.links && !u.moves[i]:
		column.write(row.row, row.expected)
	case u.guarded[i], inserted, u.all && !u.links:
		column.write(row.row, returned)
	default:
		column.write(row.row, row.expected)
	}
}

// inTick is v at the precision of its column.
func (w *versionWrite) inTick(v version) version {
	if v.at != nil {
		return versionAt(v.time().Truncate(w.model.column.tick))
	}
	return v
}

// whyRefused says which structs of an upsert were not written, or had to be inserted because their row was gone.
func (w *versionWrite) whyRefused(db *gorm.DB, returned map[string]reflect.Value) error {
	column, u, stmt := w.model.column, w.upsert, db.Statement
	var all []error
	var absent []*versionRow
	var keys [][]any
	for i := range w.rows {
		row := &w.rows[i]
		from, wrote := returned[row.name]
		switch {
		case !u.guarded[i] && !u.unloaded[i], u.skips && !wrote:
		case u.skips:
			all = append(all, w.stale(stmt, row, nil, true))
		case !wrote:
			absent, keys = append(absent, row), append(keys, row.key)
		case u.guarded[i] && (!u.links || u.moves[i]) && column.read(from).equal(w.inTick(row.next)):
			all = append(all, w.stale(stmt, row, nil, true))
		}
	}
	if len(absent) > 0 {
		found, err := w.look(db, keys)
		if err != nil {
			return errors.Join(w.staleError(stmt, absent[0]), err)
		}
		for _, row := range absent {
			if err := w.why(db, row, found); err != nil {
				all = append(all, err)
			}
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}
