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
// row that is gone, or deleted softly, is gorm.ErrRecordNotFound, with its key. On any error the slice is as it was,
// and the rows that were found stay locked; after [ErrNotAcquired] and [ErrLockTimeout] none of them does.
//
// The strength is [ForUpdate] unless a [Strength] is given. All that [WithRowLock] says holds here too, except that
// nothing can be skipped.
func LockRows(tx *gorm.DB, rows any, opts ...RowLockOption) error {
	if err := usable(tx); err != nil {
		return err
	}
	pointer := reflect.ValueOf(rows)
	if pointer.Kind() != reflect.Pointer || pointer.IsNil() || pointer.Elem().Kind() != reflect.Slice {
		return fmt.Errorf("gormlock: LockRows takes a pointer to a slice of structs, this is %T", rows)
	}
	lock, err := lockOfRow("LockRows", opts)
	if err != nil {
		return err
	}
	slice := pointer.Elem()
	stmt := &gorm.Statement{DB: tx}
	if err := stmt.Parse(rows); err != nil {
		return err
	}
	keys, err := keysOf(tx, stmt.Schema, slice)
	if err != nil || len(keys) == 0 {
		return err
	}
	found := reflect.New(slice.Type())
	query := beside(tx).Clauses(lock, whereKeys(stmt.Schema, keys), orderByKey(stmt.Schema))
	if err := query.Find(found.Interface()).Error; err != nil {
		return err
	}
	return replaceRows(tx, stmt.Schema, slice, keys, found.Elem())
}

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

func whereKeys(s *schema.Schema, keys [][]any) clause.Where {
	column, in := schema.ToQueryValues(clause.CurrentTable, s.PrimaryFieldDBNames, keys)
	return clause.Where{Exprs: []clause.Expression{clause.IN{Column: column, Values: in}}}
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
func replaceRows(tx *gorm.DB, s *schema.Schema, slice reflect.Value, keys [][]any, found reflect.Value) error {
	byKey := make(map[string]reflect.Value, found.Len())
	for i := range found.Len() {
		row := reflect.Indirect(found.Index(i))
		key, _ := keyOf(tx.Statement, s, row)
		byKey[keyName(key)] = row
	}
	var missing []string
	for _, key := range keys {
		if _, ok := byKey[keyName(key)]; !ok {
			missing = append(missing, rowToLock{s, key}.String())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("gormlock: lock %s: %w", strings.Join(missing, "; "), gorm.ErrRecordNotFound)
	}
	for i, key := range keys {
		reflect.Indirect(slice.Index(i)).Set(byKey[keyName(key)])
	}
	return nil
}
