package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// matched returns the rows that came back, each at the place of its struct. The value is not valid if no row came back for a
// struct.
func (a *answer) matched(db *gorm.DB) ([]reflect.Value, error) {
	keys := make([][]any, len(a.rows))
	for i := range a.rows {
		keys[i] = a.rows[i].Key
	}
	return a.match(db, keys, a.returning.all())
}

// match finds the row of each key. The server may spell a key differently from the program: a uuid without capitals, a
// char(n) with blanks. If rows are left that no key names, the server is asked. A nil key matches nothing.
func (a *answer) match(db *gorm.DB, keys [][]any, rows []reflect.Value) ([]reflect.Value, error) {
	found, left := a.matchNames(db.Statement, keys, rows)
	if len(left) > 0 {
		if err := a.matchLeft(db, keys, found, left); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// matchNames finds the row of each key by its string, and returns the rows that no key names.
func (a *answer) matchNames(stmt *gorm.Statement, keys [][]any, rows []reflect.Value) (found, left []reflect.Value) {
	at := make(map[string]reflect.Value, len(rows))
	for _, row := range rows {
		if key, _ := statement.KeyOf(stmt, a.model.Schema, row); key != nil {
			at[statement.KeyName(key)] = row
		}
	}
	found = make([]reflect.Value, len(keys))
	named := make(map[string]bool, len(keys))
	for i, key := range keys {
		if key != nil {
			name := statement.KeyName(key)
			found[i], named[name] = at[name], true
		}
	}
	for _, row := range rows {
		if key, _ := statement.KeyOf(stmt, a.model.Schema, row); key != nil && !named[statement.KeyName(key)] {
			left = append(left, row)
		}
	}
	return found, left
}

// matchLeft finds the keys of rows that no key names as the program writes it.
func (a *answer) matchLeft(db *gorm.DB, keys [][]any, found, left []reflect.Value) error {
	var places []int
	var asked [][]any
	for i, key := range keys {
		if key != nil && !found[i].IsValid() {
			places, asked = append(places, i), append(asked, key)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	stored, err := statement.Stored(db, a.model.Schema, asked)
	if err != nil {
		return err
	}
	for n, i := range places {
		for _, row := range left {
			if key, _ := statement.KeyOf(db.Statement, a.model.Schema, row); stored[n] != nil && statement.KeyName(key) == statement.KeyName(stored[n]) {
				found[i] = row
			}
		}
	}
	return nil
}

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
	from, left := a.matchNames(db.Statement, keys, rows)
	if len(left) > 0 && a.openKeys(from) {
		if err := a.matchLeft(db, keys, from, left); err != nil {
			return nil, err
		}
		left = slices.DeleteFunc(left, func(row reflect.Value) bool {
			return slices.ContainsFunc(from, func(other reflect.Value) bool {
				return other.IsValid() && other.Addr().Pointer() == row.Addr().Pointer()
			})
		})
	}
	switch {
	case len(left) == keyless && !a.openKeys(from):
		for i := range a.rows {
			if !from[i].IsValid() {
				from[i], left = left[0], left[1:]
			}
		}
	case !a.returning.back:
		a.matchValues(db.Statement, from, left)
	}
	return from, nil
}

// openKeys reports whether there are structs with a key that no row has.
func (a *answer) openKeys(from []reflect.Value) bool {
	for i := range a.rows {
		if a.rows[i].Key != nil && !from[i].IsValid() {
			return true
		}
	}
	return false
}

// matchValues finds the structs of rows by what they hold in the columns that the server stored as they were sent. A row that
// could be that of structs which differ is left: the columns of the conflict alone do not tell, because a condition of the index, a
// trigger or a default may have decided. Only where a trigger has changed the key it is the row of a struct with another one.
func (a *answer) matchValues(stmt *gorm.Statement, from, left []reflect.Value) {
	var open []int
	for i := range a.rows {
		if !from[i].IsValid() {
			open = append(open, i)
		}
	}
	same := func(field *schema.Field, x, y reflect.Value) bool {
		mine, _ := field.ValueOf(stmt.Context, x)
		theirs, _ := field.ValueOf(stmt.Context, y)
		return statement.SameValue(mine, theirs, column.TickIn(stmt.DB, field))
	}
	sent := a.sentFields(stmt)
	kept := slices.DeleteFunc(slices.Clone(sent), func(field *schema.Field) bool {
		return slices.ContainsFunc(left, func(row reflect.Value) bool {
			return !slices.ContainsFunc(open, func(i int) bool { return same(field, a.rows[i].Struct, row) })
		})
	})
	fits := func(i int, row reflect.Value) bool {
		return !from[i].IsValid() && !slices.ContainsFunc(kept, func(field *schema.Field) bool {
			_, zero := field.ValueOf(stmt.Context, a.rows[i].Struct)
			return (!zero || !field.HasDefaultValue) && !same(field, a.rows[i].Struct, row)
		})
	}
	differ := func(i, k int) bool {
		return slices.ContainsFunc(sent, func(field *schema.Field) bool { return !same(field, a.rows[i].Struct, a.rows[k].Struct) })
	}
	for _, row := range left {
		fit := slices.DeleteFunc(slices.Clone(open), func(i int) bool { return !fits(i, row) })
		isKeyless := func(i int) bool { return a.rows[i].Key == nil }
		if slices.ContainsFunc(fit, isKeyless) {
			fit = slices.DeleteFunc(fit, func(i int) bool { return !isKeyless(i) })
		}
		if len(fit) > 0 && !slices.ContainsFunc(fit, func(i int) bool { return differ(i, fit[0]) }) {
			from[fit[0]] = row
		}
	}
}

// sentFields are the columns in which a row that came back holds what its struct sent: those that were inserted. If the
// statement may have updated the row, they are the columns of the conflict and those that it took over.
func (a *answer) sentFields(stmt *gorm.Statement) []*schema.Field {
	values, _ := stmt.Clauses["VALUES"].Expression.(clause.Values)
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	found := a.conflictFields(stmt)
	return slices.DeleteFunc(slices.Clone(a.returning.fields), func(field *schema.Field) bool {
		inserted := slices.ContainsFunc(values.Columns, func(c clause.Column) bool { return c.Name == field.DBName })
		takenOver := slices.ContainsFunc(conflict.DoUpdates, func(set clause.Assignment) bool {
			name, is := dialect.Excluded(set.Value)
			return is && name == field.DBName && set.Column.Name == name
		})
		return !inserted || field.PrimaryKey || field == a.version.Field || a.fence != nil && field == a.fence.Field ||
			!a.upsert.skips && !takenOver && !slices.Contains(found, field)
	})
}
