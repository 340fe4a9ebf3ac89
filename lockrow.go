package gormlock

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/reload"
)

// LockRow locks the row of a loaded struct and reads it again, so that the struct is what the row is now and stays so
// until the transaction ends.
//
//	err := gormlock.LockRow(tx, &acct)
//
// Columns are overwritten, changes not yet saved too; associations that tx does not load and fields that are no columns
// are left as they are, but for what AfterFind does to them. The strength is [ForUpdate] unless a [Strength] is given; for a
// row that is to be updated [ForNoKeyUpdate] is enough, and lets rows that refer to it be inserted meanwhile.
// [Try] is one round trip for a row that is free. A row that is gone, or deleted softly, or that conditions on tx leave
// out, is gorm.ErrRecordNotFound. On any error columns and associations are as they were. What has no place on tx is an
// error: Select and Omit of columns, the Model of another type.
//
// All that [WithRowLock] says holds here too, except that nothing can be skipped.
func LockRow(tx *gorm.DB, row any, opts ...RowLockOption) error {
	return fault.Caused(tx, reload.Row(tx, row, newRowLock(opts)))
}

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
	return fault.Caused(tx, reload.Rows(tx, rows, newRowLock(opts)))
}
