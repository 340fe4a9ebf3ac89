package gormlock

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/reload"
)

// LockRow locks the row of a loaded struct and reads it again. Until the transaction ends nobody else changes the row.
//
//	err := gormlock.LockRow(tx, &acct)
//
// It overwrites all columns in the struct, including changes that you have not saved. Fields that are no columns, and
// associations that tx does not load, stay as they are, unless AfterFind changes them. But if a foreign key has changed
// in the row, the association of the old key is emptied, because Save would set the old key again. The strength is
// [ForUpdate] unless a [Strength] is given. [ForNoKeyUpdate] is enough for an update, and lets others insert rows that
// refer to the row. With [Try], a free row costs one round trip. If the row is gone, soft-deleted, or left out by
// conditions on tx, the error is gorm.ErrRecordNotFound. After any error, columns and associations are as before. Select or Omit
// of columns and a Model of another type are an error.
//
// The rest is as in [WithRowLock], except that nothing can be skipped.
func LockRow(tx *gorm.DB, row any, opts ...RowLockOption) error {
	return fault.Caused(tx, reload.Row(tx, row, newRowLock(opts)))
}

// LockRows locks the rows of a slice of loaded structs and reads them again. It locks in the order of their primary keys,
// so transactions that lock all their rows in one call of LockRows never deadlock over them.
//
//	pair := []Account{{ID: from}, {ID: to}}
//	if err := gormlock.LockRows(tx, &pair); err != nil { … }
//	// pair[0] is from, pair[1] is to, and nobody else changes them
//
// It is one statement. The elements keep their places and are read as by a Find. An element that is there twice is locked once. If a row
// is gone, soft-deleted, or left out by conditions on tx, the error is gorm.ErrRecordNotFound and names the row's key. After any error
// the slice is as before. The rows that were found stay locked, except after [ErrNotAcquired] and [ErrLockTimeout].
// Select, Omit and a Model of another type on tx are an error.
//
// A key that the server spells differently, such as a uuid in capitals, costs one more statement, and
// so does a missing row beside others that exist. Keys with a time in another zone cost none if all rows are found, each key has one
// time, and no row is named in two zones.
//
// The strength is [ForUpdate] unless a [Strength] is given. The rest is as in [WithRowLock], except that nothing can be
// skipped.
func LockRows(tx *gorm.DB, rows any, opts ...RowLockOption) error {
	return fault.Caused(tx, reload.Rows(tx, rows, newRowLock(opts)))
}
