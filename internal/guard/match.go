package guard

import (
	"reflect"

	"gorm.io/gorm"

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
		if _, err := a.matchLeft(db, keys, found, left); err != nil {
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

// matchLeft finds the keys of rows that no key names as the program writes it. It also returns which of the other keys have a row.
func (a *answer) matchLeft(db *gorm.DB, keys [][]any, found, left []reflect.Value) (there []bool, err error) {
	there = make([]bool, len(keys))
	var places []int
	var asked [][]any
	for i, key := range keys {
		if key != nil && !found[i].IsValid() {
			places, asked = append(places, i), append(asked, key)
		}
	}
	if len(asked) == 0 {
		return there, nil
	}
	stored, err := statement.Stored(db, a.model.Schema, asked)
	if err != nil {
		return nil, err
	}
	named := make(map[string]reflect.Value, len(left))
	for _, row := range left {
		key, _ := statement.KeyOf(db.Statement, a.model.Schema, row)
		named[statement.KeyName(key)] = row
	}
	for n, i := range places {
		if there[i] = stored[n] != nil; there[i] {
			found[i] = named[statement.KeyName(stored[n])]
		}
	}
	return there, nil
}
