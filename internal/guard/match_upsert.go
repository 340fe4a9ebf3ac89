package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// rowsOfUpsert returns the rows that came back, each at the place of its struct. If every struct was written, the rows come
// in the order of the structs. If some were left alone, rows are matched by key, as the server spells it. Those that no key names
// are of structs without a key: in their order if there are as many, otherwise by what they hold.
func (a *answer) rowsOfUpsert(db *gorm.DB) ([]reflect.Value, error) {
	rows := a.returning.all()
	if len(rows) == len(a.rows) && !a.returning.back {
		return rows, nil
	}
	keys := make([][]any, len(a.rows))
	keyless := 0
	for i := range a.rows {
		if keys[i] = a.rows[i].Key; keys[i] == nil {
			keyless++
		}
	}
	m := matching{answer: a, stmt: db.Statement}
	m.from, m.left = a.matchNames(db.Statement, keys, rows)
	if err := m.takeBack(db, keys, rows); err != nil {
		return nil, err
	}
	if err := m.matchSpelled(db, keys); err != nil {
		return nil, err
	}
	asMany := len(m.left) == keyless
	switch {
	case len(m.left) == 0:
	case asMany && len(m.open(false)) == 0:
		m.inOrder()
	case !a.returning.back:
		return m.from, m.match(db, asMany)
	}
	return m.from, nil
}

// matching finds the structs of the rows that came back and that no key names.
type matching struct {
	*answer
	stmt    *gorm.Statement
	from    []reflect.Value // of each struct, its row
	left    []reflect.Value // the rows that no struct has yet
	there   []bool          // of each struct, whether another row with its key is there
	table   statement.ColumnTypes
	asked   bool            // for the table
	spelled []reflect.Value // of each struct, what the server would make of its columns
}

// takeBack corrects rows whose key is that of a struct by chance: DO NOTHING left that struct out, and the server gave its key to a struct
// without one. Such a row differs from the struct in a column that the server stores as it is sent.
func (m *matching) takeBack(db *gorm.DB, keys [][]any, rows []reflect.Value) error {
	if !m.upsert.skips || m.returning.back || len(m.open(true)) == 0 {
		return nil
	}
	sent := m.sentFields(m.stmt)
	m.spelled = make([]reflect.Value, len(m.rows)) // nothing is asked here
	for i := range m.rows {
		row := m.from[i]
		isOther := func(field *schema.Field) bool {
			return m.table.Keeps(field) && !m.sentNothing(field, i) && !m.same(field, m.rows[i].Struct, row)
		}
		if !row.IsValid() || !slices.ContainsFunc(sent, func(field *schema.Field) bool { return !m.same(field, m.rows[i].Struct, row) }) {
			continue
		}
		if err := m.ask(db); err != nil {
			return err
		}
		if m.table.AsSent && slices.ContainsFunc(sent, isOther) {
			m.from[i], keys[i] = reflect.Value{}, nil
		}
	}
	m.left = m.unmatched(rows)
	return nil
}

// unmatched returns those of the rows that no struct has yet.
func (m *matching) unmatched(rows []reflect.Value) []reflect.Value {
	given := make(map[uintptr]bool, len(m.from))
	for _, row := range m.from {
		if row.IsValid() {
			given[row.Addr().Pointer()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(row reflect.Value) bool { return given[row.Addr().Pointer()] })
}

// ask asks for the columns of the table, once.
func (m *matching) ask(db *gorm.DB) (err error) {
	if !m.asked {
		m.table, err = statement.ColumnTypesOf(db)
		m.asked = err == nil
	}
	return err
}

// matchSpelled matches rows with keys that the server spells otherwise.
func (m *matching) matchSpelled(db *gorm.DB, keys [][]any) (err error) {
	if len(m.left) == 0 || len(m.open(false)) == 0 {
		return nil
	}
	if m.there, err = m.matchLeft(db, keys, m.from, m.left); err != nil {
		return err
	}
	m.left = m.unmatched(m.left)
	return nil
}

// inOrder gives the rows to the structs without a key: the server stores rows, and returns them, in the order in which they were sent.
func (m *matching) inOrder() {
	for i := range m.rows {
		if !m.from[i].IsValid() && m.rows[i].Key == nil {
			m.from[i], m.left = m.left[0], m.left[1:]
		}
	}
}

// match asks the server what it makes of the columns. Where DO NOTHING meets no trigger, a row has the key and the columns that were
// sent. Elsewhere the columns tell in which each row equals some struct, and a row may be that of a struct with another key.
func (m *matching) match(db *gorm.DB, asMany bool) (err error) {
	if err := m.ask(db); err != nil {
		return err
	}
	asSent := m.upsert.skips && m.table.AsSent
	if asSent && asMany {
		m.inOrder()
		return nil
	}
	open := m.open(true)
	if !asSent {
		open = append(open, m.open(false)...)
	}
	sent := m.sentFields(m.stmt)
	if m.spelled, err = m.spell(db, sent, open); err != nil {
		return err
	}
	m.among(open, sent, asSent)
	return nil
}

// open are the structs that have no row yet: those without a key, or those with one.
func (m *matching) open(keyless bool) (open []int) {
	for i := range m.rows {
		if !m.from[i].IsValid() && (m.rows[i].Key == nil) == keyless {
			open = append(open, i)
		}
	}
	return open
}

// spell asks what the server makes of the columns that it may spell otherwise: 10 as 10.00, 'a' as 'a  '.
func (m *matching) spell(db *gorm.DB, sent []*schema.Field, open []int) ([]reflect.Value, error) {
	var fields []*schema.Field
	for _, field := range sent {
		if m.table.Respells(field) {
			fields = append(fields, field)
		}
	}
	spelled := make([]reflect.Value, len(m.rows))
	if len(fields) == 0 || len(open) == 0 {
		return spelled, nil
	}
	structs := make([]reflect.Value, len(open))
	for n, i := range open {
		structs[n] = m.rows[i].Struct
	}
	found, err := statement.Spelled(db, m.model.Schema, m.table, fields, structs)
	for n, row := range found {
		spelled[open[n]] = row
	}
	return spelled, err
}

// among finds the structs of rows among some, by what they hold in the columns that were stored as they were sent. A row that could be
// that of structs which differ in anything is left: the columns of the conflict alone do not tell, because a condition of the index, a
// trigger or a default may have decided. Only where a trigger has changed the key it is the row of a struct with another one.
func (m *matching) among(open []int, sent []*schema.Field, asSent bool) {
	all := m.compared(open, m.insertedFields(m.stmt))
	kept := slices.DeleteFunc(slices.Clone(all), func(c *comparison) bool {
		return !slices.Contains(sent, c.field) || !asSent && !c.holdsAll(m, open)
	})
	isKeyless := func(i int) bool { return m.rows[i].Key == nil }
	sorted := map[string][]int{} // by what the columns hold that can be told apart at once
	for _, i := range open {
		name := nameOf(kept, func(c *comparison) string { return c.structs[i] })
		sorted[name] = append(sorted[name], i)
	}
	for n, row := range m.left {
		name := nameOf(kept, func(c *comparison) string { return c.found[n] })
		fit := slices.DeleteFunc(slices.Clone(sorted[name]), func(i int) bool {
			return slices.ContainsFunc(kept, func(c *comparison) bool { return !c.sorts() && !c.holds(m, i, n) })
		})
		if slices.ContainsFunc(fit, isKeyless) {
			fit = slices.DeleteFunc(fit, func(i int) bool { return !isKeyless(i) })
		}
		if len(fit) == 0 || m.there != nil && m.there[fit[0]] || slices.ContainsFunc(fit, func(i int) bool {
			return slices.ContainsFunc(all, func(c *comparison) bool { return !c.isSame(m, i, fit[0]) })
		}) {
			continue
		}
		m.from[fit[0]] = row
		sorted[name] = slices.DeleteFunc(sorted[name], func(i int) bool { return i == fit[0] })
	}
}

// insertedFields are the columns that were sent, but for those of the guards.
func (a *answer) insertedFields(stmt *gorm.Statement) (fields []*schema.Field) {
	values, _ := stmt.Clauses["VALUES"].Expression.(clause.Values)
	for _, c := range values.Columns {
		if field := a.model.Schema.LookUpField(c.Name); field != nil && field != a.version.Field && (a.fence == nil || field != a.fence.Field) {
			fields = append(fields, field)
		}
	}
	return fields
}

// sentFields are the columns in which a row that came back holds what its struct sent: those that were inserted. If the
// statement may have updated the row, they are the columns of the conflict and those that it took over.
func (a *answer) sentFields(stmt *gorm.Statement) []*schema.Field {
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	found := a.conflictFields(stmt)
	return slices.DeleteFunc(a.insertedFields(stmt), func(field *schema.Field) bool {
		takenOver := slices.ContainsFunc(conflict.DoUpdates, func(set clause.Assignment) bool {
			name, is := dialect.Excluded(set.Value)
			return is && name == field.DBName && set.Column.Name == name
		})
		return field.PrimaryKey || !slices.Contains(a.returning.fields, field) ||
			!a.upsert.skips && !takenOver && !slices.Contains(found, field)
	})
}
