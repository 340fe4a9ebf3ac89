package gormlock

import (
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// writePredicate writes what must hold for a row to be written: the versions, and what IfUnchanged asks.
func (w *versionWrite) writePredicate(stmt *gorm.Statement) {
	if w.addKey {
		for i, field := range w.model.schema.PrimaryFields {
			_, _ = stmt.WriteString(" AND ")
			stmt.QuoteTo(&stmt.SQL, clause.Column{Table: stmt.Table, Name: field.DBName})
			_ = stmt.WriteByte('=')
			stmt.AddVar(&stmt.SQL, w.named(stmt, &w.rows[0]).key[i])
		}
	}
	if w.checked && w.model.column != nil {
		_, _ = stmt.WriteString(" AND ")
		if w.batch {
			w.writeVersions(stmt)
		} else {
			w.writeVersion(stmt, w.single[0].expected)
		}
	}
	if unchanged := w.intent.columns(); unchanged != nil {
		unchanged.write(w, stmt)
	}
	if w.fence.guards() {
		w.writeGuard(stmt)
	}
}

// writeVersion writes that the version is expected. A struct that holds 0 cannot say whether the row had 0 or NULL:
// both will do.
func (w *versionWrite) writeVersion(stmt *gorm.Statement, expected version) {
	c, column := w.model.column, w.model.in(stmt).column
	switch {
	case c.kind == systemVersion && expected.n == 0:
		_, _ = stmt.WriteString(column)
		_, _ = stmt.WriteString(" IS NULL") // no row: what was not read cannot be fresh
	case c.kind == systemVersion:
		_, _ = stmt.WriteString(column)
		_ = stmt.WriteByte('=')
		w.add(stmt, strconv.FormatInt(expected.n, 10))
		_, _ = stmt.WriteString("::xid")
	case c.kind == temporalVersion && (expected.null || expected.time().IsZero()), expected.null && c.zeroIsLoaded():
		_, _ = stmt.WriteString(column)
		_, _ = stmt.WriteString(" IS NULL")
	case c.kind == integerVersion && expected.n == 0 && (c.shape == bareVersion || !c.zeroIsLoaded()):
		_, _ = stmt.WriteString("COALESCE(")
		_, _ = stmt.WriteString(column)
		_, _ = stmt.WriteString(",0)=0")
	default:
		_, _ = stmt.WriteString(column)
		_ = stmt.WriteByte('=')
		w.add(stmt, c.any(expected))
	}
}

// writeVersions writes which version each row of a batch must have: one where all have the same, else arrays of
// keys and versions where both are integers, else the keys of each version.
func (w *versionWrite) writeVersions(stmt *gorm.Statement) {
	first, same := w.rows[0].expected, true
	for i := range w.rows {
		same = same && w.rows[i].expected.equal(first)
	}
	if same {
		w.writeVersion(stmt, first)
		return
	}
	if w.writeVersionArrays(stmt) {
		return
	}
	groups := w.groups()
	_ = stmt.WriteByte('(')
	for i, group := range groups {
		if i > 0 {
			_, _ = stmt.WriteString(" OR ")
		}
		_ = stmt.WriteByte('(')
		w.writeVersion(stmt, group.expected)
		_, _ = stmt.WriteString(" AND ")
		w.writeKeys(stmt, stmt.Table, group.keys)
		_ = stmt.WriteByte(')')
	}
	_ = stmt.WriteByte(')')
}

// versionGroup is the rows of a batch that have one version.
type versionGroup struct {
	expected version
	keys     [][]any
}

func (w *versionWrite) groups() []versionGroup {
	type value struct {
		n, t int64
		null bool
	}
	at := map[value]int{}
	var groups []versionGroup
	for i := range w.rows {
		row := &w.rows[i]
		if row.twin {
			continue
		}
		v := value{row.expected.n, row.expected.time().UnixNano(), row.expected.null}
		g, ok := at[v]
		if !ok {
			g, at[v] = len(groups), len(groups)
			groups = append(groups, versionGroup{expected: row.expected})
		}
		groups[g].keys = append(groups[g].keys, row.key)
	}
	return groups
}

func (w *versionWrite) writeVersionArrays(stmt *gorm.Statement) bool {
	if w.model.column.kind != integerVersion || !isPostgres(stmt.DB) || len(w.model.schema.PrimaryFields) != 1 {
		return false
	}
	var keys, versions strings.Builder
	keys.Grow(8 * len(w.rows))
	versions.Grow(4 * len(w.rows))
	for i := range w.rows {
		row := &w.rows[i]
		id, ok := integer(row.key[0])
		if !ok || row.expected.null || row.expected.n == 0 {
			return false
		}
		if !row.twin {
			separate(&keys, id)
			separate(&versions, row.expected.n)
		}
	}
	_ = stmt.WriteByte('(')
	stmt.QuoteTo(&stmt.SQL, clause.Column{Table: stmt.Table, Name: w.model.schema.PrimaryFields[0].DBName})
	_ = stmt.WriteByte(',')
	_, _ = stmt.WriteString(w.model.in(stmt).column)
	_, _ = stmt.WriteString(") IN (SELECT * FROM unnest(")
	w.add(stmt, keys.String()+"}")
	_, _ = stmt.WriteString("::bigint[],")
	w.add(stmt, versions.String()+"}")
	_, _ = stmt.WriteString("::bigint[]))")
	return true
}

// separate adds n to the text of an array.
func separate(array *strings.Builder, n int64) {
	if array.Len() == 0 {
		_ = array.WriteByte('{')
	} else {
		_ = array.WriteByte(',')
	}
	var digits [20]byte
	_, _ = array.Write(strconv.AppendInt(digits[:0], n, 10))
}

func integer(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case int16:
		return int64(n), true
	case uint:
		return int64(n), n <= 1<<63-1
	case uint32:
		return int64(n), true
	case uint64:
		return int64(n), n <= 1<<63-1
	}
	return 0, false
}
