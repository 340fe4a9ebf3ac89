package gormlock

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// LockRow locks the row of a loaded struct and reads it again, so that the struct is what the row is now and stays so
// until the transaction ends.
//
//	err := gormlock.LockRow(tx, &acct)
//
// Columns are overwritten, changes not yet saved too; associations that tx does not load and fields that are no columns
// are left as they are, but for what AfterFind does to them. The strength is [ForUpdate] unless a [Strength] is given.
// [Try] is one round trip for a row that is free. A row that is gone, or deleted softly, or that conditions on tx leave
// out, is gorm.ErrRecordNotFound. On any error the struct is as it was. What has no place on tx is an error: Select, Omit,
// the Model of another type.
//
// All that [WithRowLock] says holds here too, except that nothing can be skipped.
func LockRow(tx *gorm.DB, row any, opts ...RowLockOption) error {
	if err := usable(tx); err != nil {
		return err
	}
	value := reflect.ValueOf(row)
	if value.Kind() != reflect.Pointer || value.IsNil() || value.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("gormlock: LockRow takes a pointer to a struct, this is %T", row)
	}
	lock, err := lockOfRow("LockRow", opts)
	if err != nil {
		return err
	}
	query, s, err := queryOfRows("LockRow", tx, row)
	if err != nil {
		return err
	}
	key, _ := keyOf(query.Statement, s, value.Elem())
	if key == nil {
		return fmt.Errorf("gormlock: LockRow: %s without a primary key: %w", s.Name, gorm.ErrPrimaryKeyRequired)
	}
	r := rowToLock{schema: s, key: key}
	fresh := unread(s, value.Elem())
	read, err := r.read(query, fresh, lock)
	if err != nil || read.DryRun {
		return err
	}
	value.Elem().Set(fresh.Elem())
	keepRowsRead(read, value.Elem())
	return nil
}

// lockOfRow is the lock for a row that must not be skipped.
func lockOfRow(call string, opts []RowLockOption) (RowLockClause, error) {
	lock := newRowLock(opts)
	if lock.err == nil && lock.skip {
		lock.err = fmt.Errorf("%w: %s locks all it is given, use Try or a query with WithSkipLocked instead of Skip", ErrOption, call)
	}
	return lock, lock.err
}

// queryOfRows is a query of the model of rows, with all that tx asks for besides.
func queryOfRows(call string, tx *gorm.DB, rows any) (*gorm.DB, *schema.Schema, error) {
	query := beside(tx)
	model := &gorm.Statement{DB: tx}
	if err := model.Parse(rows); err != nil {
		return nil, nil, err
	}
	if named := query.Statement.Model; named != nil && modelOf(named) != model.Schema.ModelType {
		return nil, nil, fmt.Errorf("gormlock: %s: the Model on tx is %T, the rows are of %s", call, named, model.Schema.Name)
	}
	return query.Model(rows).Session(&gorm.Session{}), model.Schema, nil
}

// wholeRows is a scope that refuses what does not go with reading rows again.
func wholeRows(call string, s *schema.Schema) func(*gorm.DB) *gorm.DB {
	return lastScope(func(db *gorm.DB) {
		stmt := db.Statement
		selected, given := stmt.Clauses["SELECT"]
		columns, plain := selected.Expression.(clause.Select) // empty where GORM has run the statement before
		switch {
		case stmt.Model == nil:
			fail(db, fmt.Errorf("gormlock: %s: a scope returned another query than it was given", call))
		case modelOf(stmt.Model) != s.ModelType:
			fail(db, fmt.Errorf("gormlock: %s: a scope changed the model to %T", call, stmt.Model))
		case len(stmt.Selects)+len(stmt.Omits) > 0, given && !plain, len(columns.Columns) > 0, columns.Expression != nil:
			fail(db, fmt.Errorf("gormlock: %s: Select and Omit have no place in it, which reads whole rows", call))
		}
	})
}

// unread is a pointer to a copy of the struct with nothing in its columns: GORM leaves alone what it reads NULL for.
func unread(s *schema.Schema, row reflect.Value) reflect.Value {
	fresh := reflect.New(s.ModelType)
	fresh.Elem().Set(row)
	own := map[uintptr]bool{}
	for _, field := range s.FieldsByDBName {
		if !field.Readable {
			continue
		}
		ownEmbedded(field, fresh.Elem(), own)
		if place := placeOf(field, fresh.Elem()); place.IsValid() {
			place.SetZero()
		}
	}
	return fresh
}

// ownEmbedded gives row copies of its own of the embedded structs that field stands in behind pointers.
func ownEmbedded(field *schema.Field, row reflect.Value, own map[uintptr]bool) {
	path := field.StructField.Index
	for _, i := range path[:len(path)-1] {
		if i >= 0 {
			row = row.Field(i)
			continue
		}
		pointer := row.Field(-i - 1)
		if pointer.IsNil() {
			return
		}
		if !own[pointer.Pointer()] {
			embedded := reflect.New(pointer.Type().Elem())
			embedded.Elem().Set(pointer.Elem())
			pointer.Set(embedded)
			own[pointer.Pointer()] = true
		}
		row = pointer.Elem()
	}
}

// rowToLock is a row by its primary key.
type rowToLock struct {
	schema *schema.Schema
	table  string // as the query calls it
	key    []any
}

// read locks the row and reads it into the struct that fresh points to.
func (r rowToLock) read(query *gorm.DB, fresh reflect.Value, lock RowLockClause) (*gorm.DB, error) {
	tries := lock.try && !lock.preloaded
	if tries { // the row is skipped if it is locked: unlike NOWAIT that aborts nothing, so that it needs no savepoint
		lock.try, lock.skip, lock.began = false, true, pluginOf(query).began()
	}
	forgetJoined := lastScope(func(db *gorm.DB) { r.forgetJoined(db.Statement, fresh.Elem()) })
	read := query.Clauses(lock).Scopes(wholeRows("LockRow", r.schema), narrowed(r.isKey()...), forgetJoined).Take(fresh.Interface())
	r.table = tableName(read.Statement)
	switch err := read.Error; {
	case err != nil && tries && errors.Is(err, gorm.ErrRecordNotFound):
		return nil, r.name(r.skipped(query, lock, err))
	case err != nil:
		return nil, r.name(err)
	case read.DryRun:
		return read, nil
	}
	return read, r.mustBe(read, fresh.Elem())
}

// forgetJoined empties the associations that the query joins: where there is none any more, GORM leaves them alone too.
func (r rowToLock) forgetJoined(stmt *gorm.Statement, row reflect.Value) {
	for _, join := range stmt.Joins {
		name, _, _ := strings.Cut(join.Name, ".")
		if relation := r.schema.Relationships.Relations[name]; relation != nil {
			if place := placeOf(relation.Field, row); place.IsValid() {
				place.SetZero()
			}
		}
	}
}

// skipped asks whether a row that was not read is there, and locked then.
func (r rowToLock) skipped(query *gorm.DB, lock RowLockClause, notFound error) error {
	var there int
	probe := query.Select("1").Scopes(narrowed(r.isKey()...)).Limit(1)
	probe.Statement.Preloads = nil
	if probe = probe.Find(&there); probe.Error != nil || probe.RowsAffected == 0 {
		return errors.Join(probe.Error, notFound)
	}
	refused := &rowLockError{state: ErrNotAcquired}
	lock.tell(query.Statement.Context, pluginOf(query), r.table, 0, refused)
	return refused
}

// mustBe fails where what another plugin did to the conditions has let another row through. The server may write the
// key in another way than the caller: then it is asked which row that is.
func (r rowToLock) mustBe(read *gorm.DB, row reflect.Value) error {
	got, _ := keyOf(read.Statement, r.schema, row)
	if spelling(got) == spelling(r.key) {
		return nil
	}
	stored, err := r.asStored(read)
	if err == nil && spelling(got) != stored {
		err = fmt.Errorf("gormlock: lock %s: the query found %s", r, rowToLock{r.schema, r.table, got})
	}
	return err
}

// asStored is the spelling of the key as the server writes it, and that of no key where the row is gone.
func (r rowToLock) asStored(read *gorm.DB) (string, error) {
	row := reflect.New(r.schema.ModelType)
	query := read.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Unscoped().Model(row.Interface()).Select(r.schema.PrimaryFieldDBNames)
	sameTable(query.Statement, read.Statement)
	if err := query.Clauses(clause.Where{Exprs: r.isKey()}).Limit(1).Find(row.Interface()).Error; err != nil {
		return "", err
	}
	key, _ := keyOf(read.Statement, r.schema, row.Elem())
	return spelling(key), nil
}

// spelling is the name of a key that tells times of other zones apart: a timestamp without one is what the clock shows.
func spelling(key []any) string {
	name := keyName(key)
	for _, part := range key {
		if valuer, ok := part.(driver.Valuer); ok {
			part, _ = valuer.Value()
		}
		if t, ok := part.(*time.Time); ok && t != nil {
			part = *t
		}
		if t, ok := part.(time.Time); ok {
			_, offset := t.Zone()
			name += " " + strconv.Itoa(offset)
		}
	}
	return name
}

// isKey is the condition that a row is this one.
func (r rowToLock) isKey() []clause.Expression {
	where := make([]clause.Expression, len(r.key))
	for i, field := range r.schema.PrimaryFields {
		where[i] = clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: field.DBName}, Value: r.key[i]}
	}
	return where
}

// String is the row for people: accounts id=7.
func (r rowToLock) String() string {
	key := map[string]any{}
	for i, field := range r.schema.PrimaryFields {
		if i < len(r.key) {
			key[field.DBName] = r.key[i]
		}
	}
	return rowName(r.table, r.schema.PrimaryFieldDBNames, key)
}

// name says in err which row it is about.
func (r rowToLock) name(err error) error {
	var lock *rowLockError
	switch {
	case errors.As(err, &lock):
		named := *lock
		named.what = r.String()
		return &named
	case errors.Is(err, gorm.ErrRecordNotFound):
		return fmt.Errorf("gormlock: lock %s: %w", r, gorm.ErrRecordNotFound)
	default:
		return err
	}
}
