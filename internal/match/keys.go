package match

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// ByKey returns the row of each key, and an invalid value if there is none. The server may spell a key differently from the program: a uuid without
// capitals, a char(n) with blanks. If rows are left that no key names, it asks the server. A nil key matches nothing.
func ByKey(db *gorm.DB, s *schema.Schema, keys [][]any, rows []reflect.Value) ([]reflect.Value, error) {
	found, left := byName(db.Statement, s, keys, rows)
	if len(left) > 0 {
		if _, err := bySpelling(db, s, keys, found, left); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// byName finds the row of each key by its string, and returns the rows that no key names.
func byName(stmt *gorm.Statement, s *schema.Schema, keys [][]any, rows []reflect.Value) (found, left []reflect.Value) {
	at := make(map[string]reflect.Value, len(rows))
	for _, row := range rows {
		if key, _ := statement.KeyOf(stmt, s, row); key != nil {
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
		if key, _ := statement.KeyOf(stmt, s, row); key != nil && !named[statement.KeyName(key)] {
			left = append(left, row)
		}
	}
	return found, left
}

// bySpelling asks the server for the keys of the rows that no key names in the program's spelling. It also returns which of the other keys have a
// row.
func bySpelling(db *gorm.DB, s *schema.Schema, keys [][]any, found, left []reflect.Value) (there []bool, err error) {
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
	stored, err := statement.Stored(db, s, asked)
	if err != nil {
		return nil, err
	}
	named := make(map[string]reflect.Value, len(left))
	for _, row := range left {
		key, _ := statement.KeyOf(db.Statement, s, row)
		named[statement.KeyName(key)] = row
	}
	for n, i := range places {
		if there[i] = stored[n] != nil; there[i] {
			found[i] = named[statement.KeyName(stored[n])]
		}
	}
	return there, nil
}
