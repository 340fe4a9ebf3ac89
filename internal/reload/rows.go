package reload

import (
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/absent"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/reading"
	"github.com/gormlock/gormlock/internal/rowlock"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/whereabouts"
)

// Rows locks the rows of a slice of loaded structs, in the order of their keys, and reads them again.
func Rows(tx *gorm.DB, rows any, lock rowlock.Lock) error {
	if err := install.Usable(tx); err != nil {
		return err
	}
	pointer := reflect.ValueOf(rows)
	if pointer.Kind() != reflect.Pointer || pointer.IsNil() || !statement.IsSliceOfStructs(pointer.Type().Elem()) {
		return fmt.Errorf("gormlock: LockRows takes a pointer to a slice of structs, or of pointers to structs, this is %s", absent.Type(rows))
	}
	if err := mustLock("LockRows", lock); err != nil {
		return err
	}
	query, s, err := queryOfRows("LockRows", tx, rows)
	if err != nil {
		return err
	}
	slice := pointer.Elem()
	statement.EachStruct(slice, func(row reflect.Value) { memory.Recover(model.OfSchema(query, s), row) })
	keys, err := keysOf(query, s, slice)
	asks := statement.HasScopes(query.Statement) || len(query.Statement.Clauses) > 0 // perhaps for an advisory lock, which is taken even without rows
	if err != nil || len(keys) == 0 && !asks {
		return err
	}
	different := differentKeys(keys)
	if err := mustFit(query, different); err != nil {
		return err
	}
	journal.AtWork(query)
	defer journal.Leave(query)
	found := reflect.New(slice.Type())
	read := query.Clauses(lock, orderByKey(s)).Scopes(wholeRows("LockRows", s), mark.Narrow(isOneOf(s, different))).Find(found.Interface())
	if read.Error != nil || read.DryRun {
		whereabouts.KeepTriedIn(query.Statement, model.OfSchema(query, s), rows)
		return read.Error
	}
	if err := replaceRows(read, slice, keys, found.Elem()); err != nil {
		return err
	}
	reading.KeepRows(read, slice)
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
		if keys[i], _ = statement.KeyOf(tx.Statement, s, row); keys[i] == nil {
			return nil, fmt.Errorf("gormlock: LockRows: element %d of %d has no primary key: %w", i, len(keys), gorm.ErrPrimaryKeyRequired)
		}
	}
	return keys, nil
}

// isOneOf is the condition that a row has one of the keys.
func isOneOf(s *schema.Schema, keys [][]any) clause.Expression {
	if len(keys) == 0 {
		return clause.Expr{SQL: "1=0"}
	}
	return guard.KeyIn(s, keys)
}

// mustFit refuses more keys than one statement can name.
func mustFit(tx *gorm.DB, keys [][]any) error {
	const most = 65_535 // parameters of a statement
	if guard.FitIn(tx, keys) || len(keys)*len(keys[0]) <= most {
		return nil
	}
	return fmt.Errorf("%w: LockRows of %d rows: a statement has at most %d values: sort the slice by its key, and lock its parts one after the other", fault.ErrOption, len(keys), most)
}

// orderByKey is the order of the locks. It replaces any other order.
func orderByKey(s *schema.Schema) clause.OrderBy {
	var order clause.OrderBy
	for i, field := range s.PrimaryFields {
		order.Columns = append(order.Columns, clause.OrderByColumn{Column: clause.Column{Table: clause.CurrentTable, Name: field.DBName}, Reorder: i == 0})
	}
	return order
}

// replaceRows replaces the given rows by the rows that were found, all or none.
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

// rowsByKey are the rows that were found, by the keys as the caller spells them.
func rowsByKey(read *gorm.DB, keys [][]any, found reflect.Value) (map[string]reflect.Value, error) {
	s, table := read.Statement.Schema, statement.TableName(read.Statement)
	keysFound := make([][]any, found.Len())
	for i := range keysFound {
		keysFound[i], _ = statement.KeyOf(read.Statement, s, reflect.Indirect(found.Index(i)))
	}
	nameOf := namesForKeys(keys, keysFound)
	stored := make(map[string]reflect.Value, len(keysFound))
	for i, key := range keysFound {
		stored[nameOf(key)] = reflect.Indirect(found.Index(i))
	}
	given := make(map[string]reflect.Value, len(keys))
	asked := make(map[string]bool, len(stored))
	different := differentKeys(keys)
	names, err := storedNames(read, different, stored, nameOf)
	if err != nil {
		return nil, err
	}
	var missing []string
	for i, key := range different {
		row, ok := stored[names[i]]
		if !ok {
			missing = append(missing, rowToLock{schema: s, table: table, key: key}.String())
		}
		given[spelling(key)], asked[names[i]] = row, true
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("gormlock: lock %s: %w", strings.Join(missing, "; "), gorm.ErrRecordNotFound)
	}
	for name, row := range stored {
		if !asked[name] { // another plugin has changed the conditions
			key, _ := statement.KeyOf(read.Statement, s, row)
			return nil, fmt.Errorf("gormlock: LockRows: the query found %s, which was not asked for", rowToLock{schema: s, table: table, key: key})
		}
	}
	return given, nil
}

// storedNames are the names under which the rows of these keys are in stored. If no row has a key's name, the server is asked how it
// writes that key, once for all such keys.
func storedNames(read *gorm.DB, keys [][]any, stored map[string]reflect.Value, nameOf func([]any) string) ([]string, error) {
	names := make([]string, len(keys))
	var places []int
	var unknown [][]any
	for i, key := range keys {
		names[i] = nameOf(key)
		if _, ok := stored[names[i]]; !ok && len(stored) > 0 {
			places, unknown = append(places, i), append(unknown, key)
		}
	}
	if len(unknown) == 0 {
		return names, nil
	}
	known, err := statement.Stored(read, read.Statement.Schema, unknown)
	if err != nil {
		return nil, err
	}
	for n, i := range places {
		if known[n] != nil {
			names[i] = spelling(known[n])
			if _, ok := stored[names[i]]; !ok {
				names[i] = nameOf(known[n])
			}
		}
	}
	return names, nil
}
