package guard

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// upsert says how a create treats rows that exist already.
type upsert struct {
	strict bool // Save of a slice, or associations saved whole: a struct with a key stands for a row that was read
	child  bool // made by GORM to save an association

	updates bool // existing rows are updated
	links   bool // only the foreign keys of children are set
	skips   bool // existing rows are left alone
	rows    []upsertRow
}

// upsertRow is the part of an upsert that belongs to one struct.
type upsertRow struct {
	loaded   bool          // it stands for a row that it was read from
	unread   bool          // it stands for a row, and was not read from it
	moves    bool          // it is a child that comes from another parent, or from none
	apart    bool          // it is a child that stays, and proposes a version that only an INSERT can have stored
	found    reflect.Value // the row that was found in its place, and left alone, where the server returns such
	guessed  bool          // it had no key, and has the one that GORM has worked out
	mayBeNew bool          // although it counts as loaded, because its version is that of a new row
}

// upsertOf says how the create is made. In a Save of a slice, and in associations that are saved whole, structs stand for
// loaded rows. In other creates they do not.
func upsertOf(stmt *gorm.Statement) *upsert {
	_, tracked := stmt.Settings.Load("gorm:update_track_time")
	return &upsert{strict: tracked, child: statement.IsAssociation(stmt)}
}

// prepareCreate decides what a create does to rows that exist already.
func (w *Write) prepareCreate(stmt *gorm.Statement) error {
	if w.intent.compares() {
		return fmt.Errorf("gormlock: %s: a create has no version to compare: ExpectVersion, IfUnchanged and IfMatch are for updates and deletes", w.model.Schema.Name)
	}
	u := w.upsert
	u.updates = statement.HasUpsert(stmt)
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	u.skips = conflict.DoNothing
	if err := cmp.Or(w.refuseIgnore(stmt), w.fitsUpsert(stmt, conflict)); err != nil {
		return err
	}
	if !w.version.is() {
		if u.updates {
			w.op = OpUpsert
		}
		return nil
	}
	if !u.updates && !u.skips {
		w.wantStored(stmt)
		return nil
	}
	if u.updates || u.child {
		w.op = OpUpsert
	}
	if computesColumn(conflict.DoUpdates, w.version.Field.DBName) {
		return fmt.Errorf("gormlock: %s.%s: an upsert cannot assign the version, which moves by itself: leave it out", w.model.Schema.Name, w.version.Field.Name)
	}
	w.where.filtered = u.skips || len(conflict.Where.Exprs) > 0
	u.links = u.child && u.updates && !conflict.UpdateAll
	if w.intent.ignores() {
		u.strict = false
	}
	if err := w.sortStructs(stmt, w.isOnKey(conflict)); err != nil {
		return err
	}
	w.version.checked = slices.ContainsFunc(u.rows, func(r upsertRow) bool { return r.loaded || r.unread && !u.skips })
	if w.intent.preserves() && w.version.checked {
		return fmt.Errorf("gormlock: %s: PreserveVersion on an upsert of rows that were read: update them instead", stmt.Table)
	}
	if w.version.IsSystem() && w.version.checked && !u.skips {
		return fmt.Errorf("gormlock: %s: an upsert cannot compare xmin: update the rows, or use IgnoreVersion", stmt.Table)
	}
	w.wantRows(stmt)
	return nil
}

// sortStructs finds the structs that were read from their rows. These are checked. For the others the version only moves.
func (w *Write) sortStructs(stmt *gorm.Statement, onKey bool) error {
	v, u, now := &w.version, w.upsert, stmt.NowFunc()
	w.expand(&w.memory)
	u.rows = make([]upsertRow, len(w.rows))
	v.later = v.First(now)
	names := map[string]int{}
	for i := range w.rows {
		row, r := &w.rows[i], &u.rows[i]
		row.held = v.Read(row.Struct)
		row.Expected = row.held
		if next := v.Next(row.held, now); next.Time().After(v.later.Time()) {
			v.later = next
		}
		if row.next = row.held; v.Unset(row.held) {
			row.next = v.First(now)
		} else if row.held.N < 0 {
			return negative(stmt, row.held.N)
		}
		key, _ := statement.KeyOf(stmt, w.model.Schema, row.Struct)
		if key == nil || lacksGenerated(w.model.Schema, row.Struct) {
			continue
		}
		row.Key, row.name = key, statement.KeyName(key)
		if v.IsUnread(row.held) && !w.intent.ignores() {
			return w.missing(stmt, key, nil)
		}
		if twin, ok := names[row.name]; ok && w.rows[twin].Struct.CanAddr() {
			return fmt.Errorf("gormlock: %s: two elements of one upsert have this key", w.rowName(stmt, key))
		}
		names[row.name] = i
		unset := v.Unset(row.held)
		loaded := !unset && (!u.skips || u.child) || unset && v.ZeroIsLoaded() && !u.skips && !w.intent.preserves() && (u.strict || u.links || onKey)
		r.loaded = loaded && !w.intent.ignores()
		came, fromNone := movedHere(stmt, row.Struct)
		r.moves = u.links && came
		r.mayBeNew = unset && !u.strict && (!u.links || fromNone) || w.keyIsNew(stmt, i)
		r.unread = !loaded && u.strict
		if !r.loaded {
			continue
		}
		if row.next = row.held; row.held.Null {
			row.next = v.Zero()
		}
		if v.IsInteger() && row.held.N >= v.Largest {
			return fmt.Errorf("gormlock: %s: version %d is the largest its column holds: give the column a larger type", w.rowName(stmt, key), row.held.N)
		}
		if u.skips && dialect.Of(stmt.DB).IsMySQL() {
			row.next, r.apart = v.Apart(row.next)
			continue
		}
		if u.links && !r.moves && !r.mayBeNew && (v.IsInteger() || !dialect.Of(stmt.DB).IsSQLite()) {
			row.next, r.apart = v.Apart(row.next)
		}
	}
	return nil
}

// keyIsNew reports whether a hook has made the key of the struct. Then the struct cannot stand for a row.
func (w *Write) keyIsNew(stmt *gorm.Statement, i int) bool {
	was := w.memory.Was(i)
	if !was.IsValid() || stmt.SkipHooks {
		return false
	}
	key, _ := statement.KeyOf(stmt, w.model.Schema, was)
	return key == nil
}

// isOnKey reports whether existing rows are found by their primary key.
func (p *plan) isOnKey(conflict clause.OnConflict) bool {
	if len(conflict.Columns) == 0 {
		return conflict.OnConstraint == ""
	}
	return !slices.ContainsFunc(conflict.Columns, func(c clause.Column) bool {
		field := p.model.Schema.LookUpField(c.Name)
		return field == nil || !field.PrimaryKey
	})
}

// negative is the error of a new row whose struct holds a version below zero.
func negative(stmt *gorm.Statement, n int64) error {
	return fmt.Errorf("gormlock: %s: version %d of a new row is negative", stmt.Table, n)
}

// computesColumn reports whether an upsert assigns to the column anything but the proposed value.
func computesColumn(set clause.Set, column string) bool {
	for i := range set {
		from, proposed := set[i].Value.(clause.Column)
		if set[i].Column.Name == column && (!proposed || from.Table != "excluded" || from.Name != column) {
			return true
		}
	}
	return false
}

// keysWhere returns the keys of the structs of an upsert for which is returns true.
func (w *Write) keysWhere(is func(upsertRow) bool) [][]any {
	var keys [][]any
	for i := range w.rows {
		if is(w.upsert.rows[i]) {
			keys = append(keys, w.rows[i].Key)
		}
	}
	return keys
}
