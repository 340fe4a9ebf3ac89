package gormlock

import (
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// LockRows locks the rows of a slice of loaded structs, by the order of their primary keys whatever their order in the
// slice, and reads them again. Transactions that lock what they need in one call of LockRows never deadlock over it.
//
//	pair := []Account{{ID: from}, {ID: to}}
//	if err := gormlock.LockRows(tx, &pair); err != nil { … }
//	// pair[0] is from, pair[1] is to, and nobody else changes them
//
// It is one statement. The elements keep their places and become what a Find gives; an element twice is locked once. A
// row that is gone, or deleted softly, or that conditions on tx leave out, is gorm.ErrRecordNotFound, with its key. On any
// error the slice is as it was, and the rows that were found stay locked; after [ErrNotAcquired] and [ErrLockTimeout] none
// of them does. What has no place on tx is an error: Select, Omit, the Model of another type.
//
// Each key that the caller writes in another way than the server, as a uuid in capitals, costs one statement more, and so
// does each row that is not found where others are. Times in another zone cost none if all rows are found, a key has one
// time, and one row is not named by two zones.
//
// The strength is [ForUpdate] unless a [Strength] is given. All that [WithRowLock] says holds here too, except that
// nothing can be skipped.
func LockRows(tx *gorm.DB, rows any, opts ...RowLockOption) error {
	if err := usable(tx); err != nil {
		return err
	}
	pointer := reflect.ValueOf(rows)
	if pointer.Kind() != reflect.Pointer || pointer.IsNil() || !isSliceOfStructs(pointer.Type().Elem()) {
		return fmt.Errorf("gormlock: LockRows takes a pointer to a slice of structs, or of pointers to structs, this is %T", rows)
	}
	lock, err := lockOfRow("LockRows", opts)
	if err != nil {
		return err
	}
	query, s, err := queryOfRows("LockRows", tx, rows)
	if err != nil {
		return err
	}
	slice := pointer.Elem()
	keys, err := keysOf(query, s, slice)
	if err != nil || len(keys) == 0 {
		return err
	}
	found := reflect.New(slice.Type())
	read := query.Clauses(lock, orderByKey(s)).Scopes(wholeRows("LockRows", s), narrowed(isOneOf(s, keys))).Find(found.Interface())
	if read.Error != nil || read.DryRun {
		return read.Error
	}
	if err := replaceRows(read, slice, keys, found.Elem()); err != nil {
		return err
	}
	keepRowsRead(read, slice)
	return nil
}

// keysOf are the keys of the elements.
func keysOf(tx *gorm.DB, s *schema.Schema, slice reflect.Value) ([][]any, error) {
	keys := make([][]any, slice.Len())
	for i := range keys {
		row := reflect.Indirect(slice.Index(i))
		if !row.IsValid() {
			return nil, fmt.Errorf("gormlock: LockRows: element %d of %d is nil", i, len(keys))
		}
		if keys[i], _ = keyOf(tx.Statement, s, row); keys[i] == nil {
			return nil, fmt.Errorf("gormlock: LockRows: element %d of %d has no primary key: %w", i, len(keys), gorm.ErrPrimaryKeyRequired)
		}
	}
	return keys, nil
}

// isOneOf is the condition that a row has one of the keys, each of which it names once.
func isOneOf(s *schema.Schema, keys [][]any) clause.Expression {
	column, in := schema.ToQueryValues(clause.CurrentTable, s.PrimaryFieldDBNames, differentKeys(keys))
	return clause.IN{Column: column, Values: in}
}

// orderByKey is the order of the locks. It takes the place of any other.
func orderByKey(s *schema.Schema) clause.OrderBy {
	var order clause.OrderBy
	for i, field := range s.PrimaryFields {
		order.Columns = append(order.Columns, clause.OrderByColumn{Column: clause.Column{Table: clause.CurrentTable, Name: field.DBName}, Reorder: i == 0})
	}
	return order
}

// replaceRows puts the rows that were found into the places of those that were given, all or none.
func replaceRows(read *gorm.DB, slice reflect.Value, keys [][]any, found reflect.Value) error {
	rows, err := rowsByKey(read, keys, found)
	if err != nil {
		return err
	}
	for i, key := range keys {
		reflect.Indirect(slice.Index(i)).Set(rows[spelling(key)])
	}
	return nil
}

// rowsByKey are the rows that were found, by the keys as the caller writes them.
func rowsByKey(read *gorm.DB, keys [][]any, found reflect.Value) (map[string]reflect.Value, error) {
	s, table := read.Statement.Schema, tableName(read.Statement)
	keysFound := make([][]any, found.Len())
	for i := range keysFound {
		keysFound[i], _ = keyOf(read.Statement, s, reflect.Indirect(found.Index(i)))
	}
	nameOf := namesForKeys(keys, keysFound)
	stored := make(map[string]reflect.Value, len(keysFound))
	for i, key := range keysFound {
		stored[nameOf(key)] = reflect.Indirect(found.Index(i))
	}
	given := make(map[string]reflect.Value, len(keys))
	asked := make(map[string]bool, len(stored))
	var missing []string
	for _, key := range keys {
		if _, done := given[spelling(key)]; done {
			continue
		}
		name, r := nameOf(key), rowToLock{s, table, key}
		row, ok := stored[name]
		if !ok && len(stored) > 0 {
			var err error
			if name, err = r.asStored(read); err != nil {
				return nil, err
			}
			row, ok = stored[name]
		}
		if !ok {
			missing = append(missing, r.String())
		}
		given[spelling(key)], asked[name] = row, true
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("gormlock: lock %s: %w", strings.Join(missing, "; "), gorm.ErrRecordNotFound)
	}
	for name, row := range stored {
		if !asked[name] { // what another plugin did to the conditions has let it through
			key, _ := keyOf(read.Statement, s, row)
			return nil, fmt.Errorf("gormlock: LockRows: the query found %s, which was not asked for", rowToLock{s, table, key})
		}
	}
	return given, nil
}
