// Package match finds the struct of each row that a statement returned: by its key as the server spells it, and for an upsert by what was sent.
package match

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// Upsert is an upsert whose rows were returned.
type Upsert struct {
	Schema  *schema.Schema
	Structs []reflect.Value
	Keys    [][]any // of the structs; nil: the struct has no key
	Skips   bool    // DO NOTHING
	ByKey   bool    // it updates rows that it finds by key, so it cannot meet a row twice
	Behind  bool    // its rows were read after it, so there may be rows of no struct

	Inserted []*schema.Field // the columns that were sent, except those of guards
	Returned []*schema.Field // those that were returned too, except the key
	Kept     []*schema.Field // those in which a returned row, even an updated one, holds what its struct sent, unless a trigger changes it
}

// Rows returns the rows, each at the place of its struct. Rows are matched by key, as the server spells it. The remaining rows belong to structs
// without a key. If there are as many of these, the rows are matched in order, otherwise by their content.
func (u *Upsert) Rows(db *gorm.DB, rows []reflect.Value) ([]reflect.Value, error) {
	m := matching{Upsert: u, stmt: db.Statement, keys: slices.Clone(u.Keys)}
	m.from, m.left = byName(db.Statement, u.Schema, m.keys, rows)
	if err := m.takeBack(db, rows); err != nil {
		return nil, err
	}
	if err := m.matchSpelled(db); err != nil {
		return nil, err
	}
	asMany := len(m.left) == u.keyless()
	switch {
	case len(m.left) == 0:
	case asMany && len(m.open(false)) == 0:
		m.inOrder()
	case !u.Behind:
		return m.from, m.match(db, asMany)
	}
	return m.from, nil
}

// keyless is how many of the structs have no key.
func (u *Upsert) keyless() (n int) {
	for _, key := range u.Keys {
		if key == nil {
			n++
		}
	}
	return n
}

// matching finds the structs of the rows that no key names.
type matching struct {
	*Upsert
	stmt    *gorm.Statement
	keys    [][]any         // the keys to find rows by
	from    []reflect.Value // the row of each struct
	left    []reflect.Value // the rows without a struct so far
	there   []bool          // for each struct, whether another row has its key
	table   statement.ColumnTypes
	asked   bool            // for the columns of the table
	spelled []reflect.Value // for each struct, what the server would make of its columns
}

// unmatched returns the rows without a struct.
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
		m.table, err = statement.ColumnTypesOf(db, !m.Skips)
		m.asked = err == nil
	}
	return err
}

// matchSpelled matches rows with keys that the server spells differently.
func (m *matching) matchSpelled(db *gorm.DB) (err error) {
	if len(m.left) == 0 || len(m.open(false)) == 0 {
		return nil
	}
	if m.there, err = bySpelling(db, m.Schema, m.keys, m.from, m.left); err != nil {
		return err
	}
	m.left = m.unmatched(m.left)
	return nil
}

// inOrder gives the rows to the structs without a key: the server stores and returns rows in the order in which they were sent.
func (m *matching) inOrder() {
	for i := range m.Structs {
		if !m.from[i].IsValid() && m.Keys[i] == nil {
			m.from[i], m.left = m.left[0], m.left[1:]
		}
	}
}

// match asks the server what it makes of the columns. If DO NOTHING meets no trigger, a row has the key and the columns that were sent. Otherwise
// the columns in which each row equals some struct decide, and a row may belong to a struct with another key.
func (m *matching) match(db *gorm.DB, asMany bool) (err error) {
	if err := m.ask(db); err != nil {
		return err
	}
	asSent := m.Skips && m.table.AsSent
	if asSent && asMany {
		m.inOrder()
		return nil
	}
	open := m.open(true)
	if !asSent {
		open = append(open, m.open(false)...)
	}
	if m.spelled, err = m.spell(db, open); err != nil {
		return err
	}
	m.among(open, asSent)
	return nil
}

// open returns the structs that have no row yet: those without a key, or those with one.
func (m *matching) open(keyless bool) (open []int) {
	for i := range m.Structs {
		if !m.from[i].IsValid() && (m.Keys[i] == nil) == keyless {
			open = append(open, i)
		}
	}
	return open
}

// spell asks what the server makes of columns that it may spell differently: 10 as 10.00, 'a' as 'a  '.
func (m *matching) spell(db *gorm.DB, open []int) ([]reflect.Value, error) {
	var fields []*schema.Field
	for _, field := range m.Kept {
		if m.table.Respells(field) {
			fields = append(fields, field)
		}
	}
	spelled := make([]reflect.Value, len(m.Structs))
	if len(fields) == 0 || len(open) == 0 {
		return spelled, nil
	}
	structs := make([]reflect.Value, len(open))
	for n, i := range open {
		structs[n] = m.Structs[i]
	}
	found, err := statement.Spelled(db, m.Schema, m.table, fields, structs)
	for n, row := range found {
		spelled[open[n]] = row
	}
	return spelled, err
}

// among finds the structs of rows by the columns that were stored as they were sent. A row is left out if it could belong to structs that differ in
// anything. The columns of the conflict alone are not enough, because a condition of the index, a trigger or a default may have decided. Only if a
// trigger has changed the key, a row belongs to a struct with another key.
func (m *matching) among(open []int, asSent bool) {
	all := m.compared(open, m.Inserted)
	kept := slices.DeleteFunc(slices.Clone(all), func(c *comparison) bool {
		return !slices.Contains(m.Kept, c.field) || !asSent && !c.holdsAll(m, open)
	})
	isKeyless := func(i int) bool { return m.Keys[i] == nil }
	sorted := sortedBy(kept, open)
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
