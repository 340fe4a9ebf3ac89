package guard

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// versionGuard allows writing a row at the version at which its struct was read, and moves the version.
type versionGuard struct {
	*column.Version // nil: the model has none

	checked bool         // a row is only written at the expected version
	given   bool         // the caller named that version
	forced  bool         // the version moves even if nothing else is SET
	exact   bool         // no expected version is 0 or NULL
	choice  *choice      // the caller named several versions; nil: each row must be at its expected version
	later   column.Value // the new version, if versions are times
}

func (v *versionGuard) is() bool { return v.Version != nil }

func (v *versionGuard) owns(column string) bool { return column == v.Field.DBName }

// assign writes the new version. A version that does not move is only written if nothing else is, because an UPDATE must assign something.
func (v *versionGuard) assign(b builder, written bool) bool {
	if v.IsSystem() || !b.draft.built.bumps && written {
		return written
	}
	text := b.draft.model.In(b.Statement)
	if written {
		b.Text(",")
	}
	switch {
	case !b.draft.built.bumps:
		b.Text(text.Keep)
	case v.IsTemporal():
		b.Text(text.Name, "=")
		v.writeLater(b, text.Column)
	case v.mayPassUnread(b.draft):
		b.Text(text.BumpPast)
	case v.exact:
		b.Text(text.Bump)
	default:
		b.Text(text.BumpAny)
	}
	return true
}

// writeLater writes the new time of a temporal version: the time of this statement, but always later than the old one.
func (v *versionGuard) writeLater(b builder, had string) {
	speaks := dialect.Of(b.DB)
	if v.exact || speaks.IsSQLite() {
		b.Value(v.Sent(v.later))
		return
	}
	speaks.Later(b.Text, func() { b.Value(v.Sent(v.later)) }, had, v.Tick)
}

func (v *versionGuard) hold(b builder) {
	if !v.checked || b.draft.built.unchecked || v.choice != nil && v.choice.Any {
		return
	}
	b.Text(" AND ")
	switch {
	case v.choice != nil:
		v.holdChoice(b)
	case b.draft.batch:
		v.holdAll(b)
	default:
		v.holdOne(b, b.draft.single[0].Expected)
	}
}

// holdOne writes the condition on the version. A struct with 0 does not show whether the row had 0 or NULL, so both
// fit.
func (v *versionGuard) holdOne(b builder, expected column.Value) {
	name := b.draft.model.In(b.Statement).Held
	switch {
	case v.IsUnread(expected):
		b.Text("1=0") // a row may be at that number
	case v.IsSystem() && expected.N == 0:
		b.Text(name, " IS NULL") // this finds no row: a struct that was not read cannot be up to date
	case v.IsTemporal() && (expected.Null || expected.Time().IsZero()), expected.Null && v.ZeroIsLoaded():
		b.Text(name, " IS NULL")
	case v.IsInteger() && expected.N == 0 && (v.IsBare() || !v.ZeroIsLoaded()):
		b.Text("COALESCE(", name, ",0)=0")
	default:
		b.Text(name, "=")
		v.writeValue(b, expected)
		b.draft.built.held = int32(len(b.Vars))
	}
}

// writeValue writes a version that a row can have, as it is.
func (v *versionGuard) writeValue(b builder, version column.Value) {
	switch {
	case v.IsSystem():
		b.Value(strconv.FormatInt(version.N, 10))
		b.Text("::xid")
	case v.given && v.IsInteger() && version.N > math.MaxInt16 && statement.IsPostgres(b.DB):
		b.Value(version.N)
		b.Text("::bigint") // whatever number the caller named: the column may be narrower than its field
	default:
		b.Value(v.Sent(version))
	}
}

// holdAll writes which version each row of a batch must have: one version if all have the same; arrays of keys and versions if both are integers;
// otherwise the keys for each version.
func (v *versionGuard) holdAll(b builder) {
	rows := b.draft.rows
	first, same := rows[0].Expected, true
	for i := range rows {
		same = same && rows[i].Expected.Equal(first)
	}
	if same {
		v.holdOne(b, first)
		return
	}
	if v.holdArrays(b) {
		return
	}
	b.Text("(")
	for i, group := range versionGroups(rows) {
		if i > 0 {
			b.Text(" OR ")
		}
		b.Text("(")
		v.holdOne(b, group.expected)
		b.Text(" AND ")
		b.keys(b.Table, group.keys)
		b.Text(")")
	}
	b.Text(")")
}

func (v *versionGuard) holdArrays(b builder) bool {
	keys := b.draft.model.Schema.PrimaryFields
	if !v.IsInteger() || !statement.IsPostgres(b.DB) || len(keys) != 1 {
		return false
	}
	ids, versions := newArray(len(b.draft.rows)), newArray(len(b.draft.rows))
	for i := range b.draft.rows {
		row := &b.draft.rows[i]
		id, ok := integer(row.Key[0])
		if !ok || row.Expected.Null || row.Expected.N == 0 || v.IsUnread(row.Expected) {
			return false
		}
		if !row.twin {
			ids.add(id)
			versions.add(row.Expected.N)
		}
	}
	b.Text("(")
	b.Column(b.Table, keys[0].DBName)
	b.Text(",", b.draft.model.In(b.Statement).Column, ") IN (SELECT * FROM unnest(")
	b.Value(ids.text())
	b.Text("::bigint[],")
	b.Value(versions.text())
	b.Text("::bigint[]))")
	return true
}

// versionGroup holds the rows of a batch with one version.
type versionGroup struct {
	expected column.Value
	keys     [][]any
}

func versionGroups(rows []Row) []versionGroup {
	type value struct {
		n, t int64
		null bool
	}
	at := map[value]int{}
	var groups []versionGroup
	for i := range rows {
		row := &rows[i]
		if row.twin {
			continue
		}
		v := value{row.Expected.N, row.Expected.Time().UnixNano(), row.Expected.Null}
		g, ok := at[v]
		if !ok {
			g, at[v] = len(groups), len(groups)
			groups = append(groups, versionGroup{expected: row.Expected})
		}
		groups[g].keys = append(groups[g].keys, row.Key)
	}
	return groups
}

// why returns that the row has another version, or that the struct was never read.
func (v *versionGuard) why(j *judge, stmt *gorm.Statement, row *Row, current reflect.Value) error {
	if !v.checked || j.built.unchecked {
		return nil
	}
	actual := v.Read(current)
	switch {
	case v.accepts(row, actual) && j.built.full:
		return j.fullAt(stmt, row)
	case v.accepts(row, actual):
		return nil
	case v.choice != nil:
		return j.stale(stmt, row, v.Any(actual), false).Err()
	case !v.Loaded(row.Expected):
		if !actual.Null && (!v.IsInteger() || actual.N != 0) || v.IsUnread(row.Expected) {
			return j.missing(stmt, row.Key, v.Any(actual))
		}
		return nil
	}
	stale := j.stale(stmt, row, v.Any(actual), false)
	stale.Own = stale.Own || v.Follows(actual, row.Expected) && movedByBulk(stmt, j.model, row.Key)
	return stale.Err()
}

// accepts reports whether the row may be written at this version. A struct with the zero time fits none but NULL.
func (v *versionGuard) accepts(row *Row, actual column.Value) bool {
	if v.choice != nil {
		return v.choice.has(actual)
	}
	return row.Expected.Equal(actual) && !v.IsUnread(actual) && (!v.IsTemporal() || actual.Null || !actual.Time().IsZero())
}

// errMetAnother is the same reason if an upsert finds rows by columns other than the key.
var errMetAnother = errors.New("nothing was written: another row may have the values by which this upsert finds rows, or a trigger or a policy kept the row as it is")

// errNotWritten is the reason if a row at the right version was not written, and the statement had no other condition.
var errNotWritten = errors.New("nothing was written: a trigger, a policy or a condition that a plugin added kept the row as it is, or the row was gone for a moment")

// errNoXmin is the reason if a row has no xmin to compare.
var errNoXmin = errors.New("nothing was written: rows of a foreign table have no xmin, so nothing says if others have changed them: give the model a version column")

// errStoredAnew says why an upsert shows a row at the struct's version.
var errStoredAnew = errors.New("the upsert made a new one, which is never committed, or a trigger left the row as it was")

// notWritten is errNotWritten, or says that the row cannot be found by its version.
func (v *versionGuard) notWritten(actual column.Value) error {
	if v.IsSystem() && actual.N == 0 {
		return errNoXmin
	}
	if zone := v.SkippedAt(actual); zone != "" {
		return fmt.Errorf("nothing was written: the column has no time zone, so a time that the clocks of %s skip is not found in it: make it timestamptz. "+
			"Or a trigger or a policy kept the row as it is", zone)
	}
	return errNotWritten
}

// insert gives every new row its first version, even if Select, Omit or a map leaves the column out.
func (v *versionGuard) insert(b builder, values *clause.Values) {
	if v.IsSystem() {
		return
	}
	d, name := b.draft, v.Field.DBName
	initial := v.First(b.NowFunc())
	first := v.Sent(initial)
	if len(d.rows) == 0 {
		d.single[0].next = initial
	}
	d.begin(initial)
	at := slices.IndexFunc(values.Columns, func(c clause.Column) bool { return c.Name == name })
	left := at < 0
	if left {
		at = len(values.Columns)
		values.Columns = append(values.Columns, clause.Column{Name: name})
		for i := range values.Values {
			values.Values[i] = append(values.Values[i], nil)
		}
		if len(values.Values) == 0 {
			values.Values = [][]any{{nil}}
		}
	}
	for i := range values.Values {
		cell := &values.Values[i][at]
		if n, ok := (*cell).(int64); ok && n > 0 && len(d.rows) == 0 && !v.IsUnread(column.Value{N: n}) {
			continue
		}
		switch {
		case i < len(d.rows):
			*cell = v.Sent(d.rows[i].next)
		case i < d.memory.Count:
			switch held := v.Read(d.memory.Row(i)); {
			case v.Unset(held):
				*cell = first
			case held.N < 0:
				fault.Add(b.DB, negative(b.Statement, held.N))
			case left || v.IsTemporal():
				*cell = v.Sent(held)
			}
		case v.isUnset(*cell):
			*cell = first
		case v.IsTemporal():
			if given, err := v.Of(*cell); err == nil {
				*cell = v.Sent(given)
			}
		}
	}
	b.noteSent(values, at)
}

// begin moves the first version of an upsert's new structs to initial, if versions are times and it is later. GORM has set their time of creation
// since, and a CHECK may say that a row cannot be changed before it was created.
func (d *draft) begin(initial column.Value) {
	v := &d.version
	if !v.IsTemporal() {
		return
	}
	for i := range d.rows {
		if row := &d.rows[i]; v.Unset(row.held) {
			row.next = initial
		}
	}
	if initial.Time().After(v.later.Time()) {
		v.later = initial
	}
}

// isUnset reports whether a map has no version.
func (v *versionGuard) isUnset(value any) bool {
	if value == nil || reflect.ValueOf(value).IsZero() {
		return true
	}
	if _, ok := value.(clause.Expression); ok {
		return false
	}
	given, err := v.Of(value)
	return err == nil && v.Unset(given)
}
