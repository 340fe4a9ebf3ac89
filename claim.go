package gormlock

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/claim"
	"github.com/gormlock/gormlock/internal/fault"
)

// Claim changes up to limit rows that nobody else has locked, and returns them as they are now, in the order the scopes
// ask for. Two calls of it never get the same row, and none waits for another.
//
//	jobs, err := gormlock.Claim[Job](db, 10, map[string]any{"state": "running", "attempts": gorm.Expr("attempts + 1")},
//		func(q *gorm.DB) *gorm.DB { return q.Where("state = ?", "ready").Order("priority DESC, id") })
//
// It is one statement: the rows are found and locked with SKIP LOCKED, changed and read. In a transaction it is part of
// that, and what it claimed is free again after a rollback; outside of one it needs none. When nothing is free the
// slice is empty. Fewer rows than limit may come back although more are free, when a scope's join repeats rows or a
// rival changed one at that moment: call again until nothing comes.
//
// Constants of the scopes' conditions are written into the statement, so that the server can use a partial index (WHERE state =
// 'ready') however often the statement runs: strings, booleans and integers. Where one has many values, as an id has, it stays
// a parameter; so do times and other arguments.
//
// The keys of assign are fields or columns of T, its values are values or gorm.Expr. What the scopes look for should be
// changed by it, or the next call claims the same rows again. UpdatedAt is set and the version column grows; rows that
// are deleted softly are left. Conditions, joins and order stand in the scopes or on db; so does Preload, which reads
// afterwards, as it does for associations that Joins names. What has no place in a claim is an error: Select, Omit,
// Limit, Distinct, Group, MapColumns, raw SQL, an alias of the table, another row lock, a Model that has a key, Joins of an
// association with conditions.
//
// Rows are told apart by T's primary key, which has to be unique in the table. Where it is not, as it may be in a partitioned
// or inherited table, a claim could change rows that it has neither locked nor looked at. One that finds it has is an error,
// the rows come back beside it, and a transaction can only be rolled back.
//
// A fence column gets the token that the context carries or [Fence] names: see there. Without one nothing is claimed
// ([ErrFenceMissing]); once a later token was issued, or a row was written with one, no row is ([ErrFenced]), and the
// transaction can only be rolled back.
//
// AfterFind runs for each row, as for a query. If it fails, or a Preload does, the rows are claimed all the same: they
// come back beside the error. If a column does not fit its field, those before it come back: a transaction, rolled back,
// gives all of them free. The hooks of an update do not run: BeforeUpdate, AfterUpdate, BeforeSave and AfterSave belong to
// rows that are known beforehand. Where the server itself changes the key of a row that is written, by a trigger or because
// it is generated, the order of a first claim of few rows is not kept.
//
// Of GORM's callbacks those of Row run, once, as for Rows: a plugin that adds conditions, of a tenant for example, has to
// register there too, not for Query and Update alone.
//
// It locks FOR NO KEY UPDATE, as an UPDATE does: a row whose child is just being inserted is not skipped. At REPEATABLE
// READ and above a row that was changed since the snapshot is an error that [IsRetryable] knows; at any level, so is a row
// that a rival moves to another partition at that moment, as claims do that assign the column by which the table is
// partitioned.
func Claim[T any](db *gorm.DB, limit int, assign map[string]any, scopes ...func(*gorm.DB) *gorm.DB) ([]T, error) {
	rows := []T{}
	err := fault.Caused(db, claim.Into(db, &rows, limit, assign, scopes))
	if err != nil && len(rows) == 0 {
		return nil, err
	}
	return rows, err
}
