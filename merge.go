package gormlock

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/merge"
)

// SaveMerged saves what mine changed of base on the row as it is now: for a form that was open while others wrote. Both are
// pointers to structs of one model and one row: base as it was read, mine with the changes.
//
//	mine := base                // what the form began with
//	mine.Title = form.Title
//	err := gormlock.SaveMerged(db, &mine, &base)
//	var conflict *gormlock.ConflictError
//	if errors.As(err, &conflict) { … } // show both sides of conflict.Columns
//
// What only I changed is written, what only they changed comes into mine, and a column that both changed to different values
// is a [*ConflictError], which names them all. Values are equal as with [IfUnchanged]: NULL equals NULL, json is compared as
// jsonb, numbers as numbers, times at the precision of their column, text by its bytes. Times of the update never conflict.
//
// It waits for a row that somebody has locked, as an UPDATE does, and locks it FOR NO KEY UPDATE. A row that is gone, or
// deleted softly, is a [*StaleError] with Deleted; one that conditions on tx leave out is gorm.ErrRecordNotFound. The version
// moves, hooks run and fences hold as in Save, and hooks see mine merged; where I changed nothing, nothing is written, and no
// hook runs. Models without a version can be merged too. Afterwards mine is the row, without associations of other keys than it
// has. On any error or rollback nothing is stored and mine is as it was: after an error of a late hook a transaction cannot commit.
//
// In a transaction it is two round trips, one where I changed nothing, one more where I changed what can be written in several
// ways, such as json. Outside of one it begins its own. On databases other than PostgreSQL the transaction keeps writers out.
//
// base has to have been read, or it is [ErrVersionMissing], and must not share what stands behind pointers, slices and maps
// with mine: a change there would be in both. It refuses with an error: Select, Omit of columns, [ExpectVersion],
// [IgnoreVersion], IfUnchanged, a row lock on tx, a change of a column that the model may not read or write, and an
// association that differs from base: associations are neither merged nor saved, Omit says that this is known.
func SaveMerged(tx *gorm.DB, mine, base any) error {
	return fault.Caused(tx, merge.Save(tx, mine, base))
}

// ConflictError says which columns were changed here and, to something else, in the row. It is [ErrStale]; running the
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
