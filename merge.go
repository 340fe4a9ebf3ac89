package gormlock

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/merge"
)

// SaveMerged applies the changes from base to mine to the row as it is now, for example because others wrote while a form was open.
// Both are pointers to structs of the same row: base as it was read, mine with the changes.
//
//	mine := base                // what the form began with
//	mine.Title = form.Title
//	err := gormlock.SaveMerged(db, &mine, &base)
//	var conflict *gormlock.ConflictError
//	if errors.As(err, &conflict) { … } // show both sides of conflict.Columns
//
// A column that only mine changed is written. A column that only others changed is read into mine. If both changed a column to
// different values, nothing is stored: the [*ConflictError] names all such columns. Values are compared as with [IfUnchanged]:
// NULL equals NULL, json is compared as jsonb, numbers as numbers, times at the precision of their column, text by its bytes.
// The times that GORM sets in an update never conflict.
//
// SaveMerged waits for a row that somebody has locked, as an UPDATE does, and locks it FOR NO KEY UPDATE. A row that is gone, or soft-deleted, is a
// [*StaleError] with Deleted; one that conditions on tx leave out is gorm.ErrRecordNotFound. The version moves, hooks run and fences hold as in Save.
// Hooks see mine merged. If mine changed nothing, nothing is written and no hook runs. A changed field that is no column counts as a change if there
// is a hook before the write, because the hook may set a column from it. Models without a version can be merged too. Afterwards mine equals the row.
// Associations with keys that the row no longer has are emptied. After any error or rollback nothing is stored and mine is as it was. If a hook fails
// after the write, the transaction cannot commit.
//
// In a transaction it takes two round trips, or one if mine changed nothing. It takes one more if mine changed a value that can
// be written in several ways, such as json. Outside of a transaction it begins one. On databases without row locks the
// transaction keeps other writers out.
//
// base must have been read, otherwise the error is [ErrVersionMissing]. base and mine must not share pointers, slices and maps that change, because
// the change would be in both. It is an error to give tx a Select, an Omit of columns, [ExpectVersion], [IgnoreVersion], IfUnchanged or a row lock;
// to change a column that the model must not read or write; and to change an association, because associations are neither merged nor saved. To merge
// only the columns, Omit the association.
func SaveMerged(tx *gorm.DB, mine, base any) error {
	return fault.Caused(tx, merge.Save(tx, mine, base))
}

// ConflictError says which columns were changed on both sides, to different values. It is [ErrStale]; running the
// transaction again does not cure it.
type ConflictError struct {
	Columns []ColumnConflict // in the order of the model

	table, row string
}

// ColumnConflict is a column that both sides changed, with the values that the structs hold in its field.
type ColumnConflict struct {
	Column             string
	Base, Mine, Theirs any
}

func newConflictError(c fault.Conflict) error {
	e := &ConflictError{table: c.Table, row: c.Row}
	for _, column := range c.Columns {
		e.Columns = append(e.Columns, ColumnConflict(column))
	}
	return e
}

// Error names the row and the columns, not their values.
func (e *ConflictError) Error() string {
	c := fault.Conflict{Row: e.row}
	for _, column := range e.Columns {
		c.Columns = append(c.Columns, fault.ConflictColumn(column))
	}
	return c.Text()
}

// Is makes a ConflictError ErrStale.
func (*ConflictError) Is(target error) bool { return target == ErrStale }
