package gormlock

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/claim"
	"github.com/gormlock/gormlock/internal/fault"
)

// Claim changes up to limit rows that nobody else has locked, and returns them as they are now, in the order of the scopes.
// Two calls never get the same row, and neither waits for the other.
//
//	jobs, err := gormlock.Claim[Job](db, 10, map[string]any{"state": "running", "attempts": gorm.Expr("attempts + 1")},
//		func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", "ready").Order("priority DESC, id") })
//
// One statement finds the rows, locks them with SKIP LOCKED, changes and returns them. In a transaction, a rollback frees them again. Claim
// also works without a transaction. If no row is free, the slice is empty. Claim may return fewer rows than limit although more are free: if a
// join repeats rows, or if another writer is changing one at that moment. Call it until it returns none.
//
// Some arguments of the scopes' conditions are written into the statement, so that the server can always use a partial index
// (WHERE state = 'ready'). These are strings that cannot be times, and booleans and integers that =, <>, <, > or IN compare with a column of T.
// An argument with many different values, such as an id, stays a parameter. So do times and other arguments.
//
// The keys of assign are fields or columns of T. Its values are values or gorm.Expr. assign must change what the scopes
// look for, or the next call claims the same rows again. UpdatedAt is set, and the version moves. Soft-deleted rows are
// not claimed. Put conditions, joins, order and Preload into the scopes or on db. These are an error: Select, Omit,
// Limit, Distinct, Group, MapColumns, raw SQL, an alias of the table, another row lock, a Model with a key, Joins of an
// association with conditions.
//
// The primary key of T must be unique in the table. If it is not, as in some partitioned or inherited tables, a claim could
// change rows that it has not locked. When that happens you get the rows and an error, and a transaction can only be
// rolled back.
//
// A fence column gets the token of the context, or of [Fence]. Without a token nothing is claimed ([ErrFenceMissing]). If a
// later token was issued, or a row was written with one, nothing is claimed ([ErrFenced]), and a transaction can only be
// rolled back.
//
// If the statement or its commit fails, nothing is claimed, and you get no rows. If the connection ends before the outcome is known, you get the
// rows that have come, and they count as not read. If a Preload fails, or AfterFind, which runs for each row, the rows are claimed anyway:
// you get them and the error. If a column does not fit its field, you get the rows before it. To free all of them, roll back. BeforeUpdate,
// AfterUpdate, BeforeSave and AfterSave do not run, because the rows are not known beforehand. If the server itself changes the key of a
// written row, by a trigger or as a generated column, the first claim of few rows may not keep the order.
//
// GORM's Row callbacks run once. A plugin that adds conditions, such as a tenant, must register there too, and not only
// for Query and Update.
//
// Claim locks FOR NO KEY UPDATE, as an UPDATE does, so a row is not skipped while its child is inserted. At REPEATABLE READ and
// above, a row that was changed since the snapshot is an error for which [IsRetryable] is true. At any level, so is a row that
// another writer moves to another partition at that moment.
func Claim[T any](db *gorm.DB, limit int, assign map[string]any, scopes ...func(*gorm.DB) *gorm.DB) ([]T, error) {
	rows := []T{}
	err := fault.Caused(db, claim.Into(db, &rows, limit, assign, scopes))
	if err != nil && len(rows) == 0 {
		return nil, err
	}
	return rows, err
}
