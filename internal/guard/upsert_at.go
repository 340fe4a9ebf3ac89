package guard

import (
	"slices"
	"strconv"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// A trigger before an insert changes what an upsert proposes, even for a row that is then updated. So versions are compared with those that are
// sent.

// mostVars is how many values a statement can have.
const mostVars = 65_535

// sentCell is a value of a row of VALUES. Conditions refer to it by its place, so it is sent only once.
type sentCell struct {
	value any
	place int // among all sent values; 0: it is not a single sent value
}

// Build writes it.
func (s *sentCell) Build(to clause.Builder) {
	stmt, ok := to.(*gorm.Statement)
	if !ok {
		to.AddVar(to, s.value)
		return
	}
	before := len(stmt.Vars)
	stmt.AddVar(stmt, s.value)
	if s.place = 0; len(stmt.Vars) == before+1 {
		s.place = len(stmt.Vars)
	}
}

// noteSent notes the places of the versions and keys of structs among the values of an upsert. Only PostgreSQL can refer to a place.
func (b builder) noteSent(values *clause.Values, version int) {
	d := b.draft
	if len(d.rows) == 0 || len(d.rows) > len(values.Values) || !d.version.checked && !d.upsert.links || d.upsert.skips || !statement.IsPostgres(b.DB) {
		return
	}
	columns := []int{version}
	for _, field := range d.model.Schema.PrimaryFields {
		columns = append(columns, indexOf(values.Columns, field.DBName))
	}
	d.upsert.sent = make([]sentCell, len(d.rows)*len(columns))
	for i := range d.rows {
		for n, at := range columns {
			cell := &d.upsert.sent[i*len(columns)+n]
			if at >= 0 && !statement.Computed(values.Values[i][at]) {
				cell.value, values.Values[i][at] = values.Values[i][at], cell
			}
		}
	}
}

// sentBy are the version and the key of a struct among the sent values.
func (b builder) sentBy(i int) []sentCell {
	n := 1 + len(b.draft.model.Schema.PrimaryFields)
	if len(b.draft.upsert.sent) < (i+1)*n {
		return make([]sentCell, n)
	}
	return b.draft.upsert.sent[i*n : (i+1)*n]
}

// name refers to a value that was already sent.
func (s sentCell) name() string { return "$" + strconv.Itoa(s.place) }

// expects is the version that the row of a struct must have. If it must have none, it may have 0.
func (v *versionGuard) expects(row *Row) column.Value {
	if row.Expected.Null {
		return v.Zero()
	}
	return row.Expected
}

// proposes is the version that a struct proposes.
func (v *versionGuard) proposes(row *Row) column.Value { return row.next }

// sendsVersions reports whether the versions of these structs can be sent again. SQLite does not need it, because no trigger changes what is
// proposed. For MariaDB and MySQL they may be too many.
func (b builder) sendsVersions(structs []int) bool {
	switch d := dialect.Of(b.DB); {
	case d.IsSQLite():
		return false
	case d.IsPostgres():
		return true
	}
	return len(b.Vars)+2*len(structs)*(1+len(b.draft.model.Schema.PrimaryFields)) < mostVars
}

// isAt writes that a row has the version of one of these structs, and its key if the versions differ.
func (b builder) isAt(had string, structs []int, version func(*Row) column.Value) {
	groups := b.draft.versionsOf(structs, version)
	switch {
	case len(groups) == 1:
		b.Text(had, "=")
		b.version(groups[0].structs[0], groups[0].version)
		return
	case b.writePairs(had, structs, version), b.writeValues(had, structs, version):
		return
	}
	b.Text("(")
	for n, group := range groups {
		if n > 0 {
			b.Text(" OR ")
		}
		b.Text(had, "=")
		b.version(group.structs[0], group.version)
		b.Text(" AND ")
		b.keysSent(group.structs)
	}
	b.Text(")")
}

// versionOf holds the structs of an upsert with one version.
type versionOf struct {
	version column.Value
	structs []int
}

// versionsOf groups structs by version. A few structs with different versions stay apart, so that only their number decides the text of the
// statement, which is prepared once.
func (d *draft) versionsOf(structs []int, version func(*Row) column.Value) []versionOf {
	const few = 100
	type value struct{ n, t int64 }
	at := map[value]int{}
	var groups, each []versionOf
	for _, i := range structs {
		one := version(&d.rows[i])
		v := value{one.N, one.Time().UnixNano()}
		g, ok := at[v]
		if !ok {
			g, at[v] = len(groups), len(groups)
			groups = append(groups, versionOf{version: one})
		}
		groups[g].structs = append(groups[g].structs, i)
		each = append(each, versionOf{one, []int{i}})
	}
	if len(groups) > 1 && len(structs) <= few {
		return each
	}
	return groups
}

// version writes the version of a struct.
func (b builder) version(i int, version column.Value) {
	if sent := b.sentBy(i)[0]; sent.place > 0 && version.Equal(b.draft.rows[i].next) {
		b.Text(sent.name())
		return
	}
	b.Value(b.draft.version.Sent(version))
}

// writePairs writes that the key and the version of a row are among those of the structs, as two arrays of numbers. It reports false if they are
// not numbers, or there is no room for them.
func (b builder) writePairs(had string, structs []int, version func(*Row) column.Value) bool {
	fields := b.draft.model.Schema.PrimaryFields
	if !b.draft.version.IsInteger() || !statement.IsPostgres(b.DB) || len(fields) != 1 || len(b.Vars)+2 > mostVars {
		return false
	}
	ids, versions := newArray(len(structs)), newArray(len(structs))
	for _, i := range structs {
		row := &b.draft.rows[i]
		id, is := integer(row.Key[0])
		if !is {
			return false
		}
		ids.add(id)
		versions.add(version(row).N)
	}
	b.Text("(")
	b.Column(b.Table, fields[0].DBName)
	b.Text(",", had, ") IN (SELECT * FROM unnest(")
	b.Value(ids.text())
	b.Text("::bigint[],")
	b.Value(versions.text())
	b.Text("::bigint[]))")
	return true
}

// writeValues writes the same for keys of any types, as a list in which the server looks them up. The first element has no values, only the types.
// It reports whether the keys were sent already.
func (b builder) writeValues(had string, structs []int, version func(*Row) column.Value) bool {
	fields := b.draft.model.Schema.PrimaryFields
	if !statement.IsPostgres(b.DB) || len(b.Vars)+len(structs) > mostVars {
		return false
	}
	for _, i := range structs {
		if slices.ContainsFunc(b.sentBy(i)[1:], func(key sentCell) bool { return key.place == 0 }) {
			return false
		}
	}
	names := append(slices.Clone(b.draft.model.Schema.PrimaryFieldDBNames), b.draft.version.Field.DBName)
	b.Text("(")
	for _, field := range fields {
		b.Column(b.Table, field.DBName)
		b.Text(",")
	}
	b.Text(had, ") IN (VALUES ")
	b.list(len(names), func(n int) {
		b.Text("(SELECT ")
		b.Column("", names[n])
		b.Text(" FROM ")
		b.WriteQuoted(statement.OwnTable)
		b.Text(" WHERE false)")
	})
	for _, i := range structs {
		b.Text(",")
		b.list(len(names), func(n int) {
			if n < len(fields) {
				b.Text(b.sentBy(i)[1+n].name())
			} else {
				b.version(i, version(&b.draft.rows[i]))
			}
		})
	}
	b.Text(")")
	return true
}

// keysSent writes that a row has the key of one of these structs.
func (b builder) keysSent(structs []int) {
	fields := b.draft.model.Schema.PrimaryFields
	for _, i := range structs {
		for _, key := range b.sentBy(i)[1:] {
			if key.place == 0 {
				b.keys(b.Table, b.draft.keysOf(structs))
				return
			}
		}
	}
	b.list(len(fields), func(n int) { b.Column(b.Table, fields[n].DBName) })
	b.Text(" IN (")
	for n, i := range structs {
		if n > 0 {
			b.Text(",")
		}
		keys := b.sentBy(i)[1:]
		b.list(len(keys), func(n int) { b.Text(keys[n].name()) })
	}
	b.Text(")")
}

// list writes one element, or several as a row.
func (b builder) list(n int, write func(int)) {
	if n > 1 {
		b.Text("(")
		defer b.Text(")")
	}
	for i := range n {
		if i > 0 {
			b.Text(",")
		}
		write(i)
	}
}
