package gormlock

import (
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// LockRow locks the row of a loaded struct and reads it again, so that the struct is what the row is now and stays so
// until the transaction ends.
//
//	err := gormlock.LockRow(tx, &acct)
//
// Columns are overwritten, changes not yet saved too; associations that tx does not Preload are left as they are. The
// strength is [ForUpdate] unless a [Strength] is given. [Try] is one round trip for a row that is free. A row that is
// gone, or deleted softly, is gorm.ErrRecordNotFound. On any error the struct is as it was.
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
	stmt := &gorm.Statement{DB: tx}
	if err := stmt.Parse(row); err != nil {
		return err
	}
	key, complete := keyOf(tx.Statement, stmt.Schema, value.Elem())
	if key == nil {
		return fmt.Errorf("gormlock: LockRow: %s without a primary key: %w", stmt.Schema.Name, gorm.ErrPrimaryKeyRequired)
	}
	r := rowToLock{schema: stmt.Schema, key: key}
	query := beside(tx).Session(&gorm.Session{})
	if !complete { // GORM leaves a zero part of the key out of the conditions
		query = query.Clauses(r.where()).Session(&gorm.Session{})
	}
	if lock.try && !lock.preloaded {
		return r.name(r.try(query, row, lock))
	}
	return r.name(query.Clauses(lock).Take(row).Error)
}

// lockOfRow is the lock for a row that must not be skipped.
func lockOfRow(call string, opts []RowLockOption) (RowLockClause, error) {
	lock := newRowLock(opts)
	if lock.err == nil && lock.skip {
		lock.err = fmt.Errorf("%w: %s locks all it is given, use Try or a query with WithSkipLocked instead of Skip", ErrOption, call)
	}
	return lock, lock.err
}

// rowToLock is a row by its primary key.
type rowToLock struct {
	schema *schema.Schema
	key    []any
}

// try skips the row if it is locked, and asks afterwards whether it is there: unlike NOWAIT that aborts nothing, so
// that it needs no savepoint.
func (r rowToLock) try(query *gorm.DB, row any, lock RowLockClause) error {
	lock.try, lock.skip, lock.began = false, true, pluginOf(query).began()
	err := query.Clauses(lock).Take(row).Error
	if !errors.Is(err, gorm.ErrRecordNotFound) {
		return err
	}
	var there int
	probe := query.Model(reflect.New(r.schema.ModelType).Interface()).Clauses(r.where())
	if probe = probe.Select("1").Limit(1).Find(&there); probe.Error != nil || probe.RowsAffected == 0 {
		return errors.Join(probe.Error, err)
	}
	refused := &rowLockError{state: ErrNotAcquired}
	lock.tell(query.Statement.Context, pluginOf(query), r.schema.Table, 0, refused)
	return refused
}

func (r rowToLock) where() clause.Where {
	var where clause.Where
	for i, field := range r.schema.PrimaryFields {
		where.Exprs = append(where.Exprs, clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: field.DBName}, Value: r.key[i]})
	}
	return where
}

// String is the row for people: accounts id=7.
func (r rowToLock) String() string {
	key := map[string]any{}
	for i, field := range r.schema.PrimaryFields {
		key[field.DBName] = r.key[i]
	}
	return rowName(r.schema.Table, r.schema.PrimaryFieldDBNames, key)
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
