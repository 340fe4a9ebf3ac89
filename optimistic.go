package gormlock

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/migrate"
	"github.com/gormlock/gormlock/internal/reload"
)

// VersionClause changes what one statement does about versions: see [IgnoreVersion], [ExpectVersion] and [IfUnchanged].
// It goes into db.Clauses and gorm.G, and its method ModifyStatement into the Scopes of the generics API. It belongs on the
// statement itself: in a hook, a group of conditions or a join it is an error.
type VersionClause struct{ versionClauses }

// versionClauses hides how the clause gets into a statement.
type versionClauses = guard.Clause

// IgnoreVersion lets one statement write without a check. The version still moves, so that other holders of the row see
// that it changed; a loaded struct counts its own version on, and is stale afterwards if others wrote in between.
func IgnoreVersion() VersionClause {
	return VersionClause{guard.IgnoreVersion()}
}

// ExpectVersion lets one statement write only rows at this version, whatever the struct holds: a statement that writes no row
// fails with [ErrStale], and a bulk statement leaves rows at other versions as they are, which only RowsAffected shows.
//
// It is for a version that came in a form, and for the generics API, whose updates know no struct. The version is an integer,
// or a time.Time for a temporal version column.
//
// It belongs on the write: a read, that of FirstOrCreate too, and a sub-query compare nothing, and fail with it.
func ExpectVersion(version any) VersionClause {
	return VersionClause{guard.ExpectVersion(version)}
}

// PreserveVersion lets one update, [Touch] or upsert leave the version of its rows as it is, for what other holders of the
// row need not know of: the time of a visit, or an upsert that is to do exactly what Rails does. The version is checked as
// ever. Holders of the row overwrite such a change unseen if they write all columns.
//
// An upsert of structs that were read from their rows cannot tell an update from an insert then, and is refused. The
// structs of any other have no version afterwards, unless all columns were updated: read them again.
func PreserveVersion() VersionClause {
	return VersionClause{guard.PreserveVersion()}
}

// IfUnchanged lets an update or delete write its row only while the named columns have the values they have in before,
// a pointer to the struct as it was read: for tables without a version. Names are of fields or columns; none means all
// columns. NULL equals NULL, json is compared as jsonb, times at the precision of their column. Where a column changed
// the statement fails with [ErrStale]. It belongs on the write itself, as [ExpectVersion] does.
func IfUnchanged(before any, names ...string) VersionClause {
	return VersionClause{guard.IfUnchanged(before, names)}
}

// Touch moves the version of a row forward, and its update time where the model has one, as a change of the row would:
// the owner of a changed collection, the parent of a changed child. The row must be at the version that value, a
// pointer to the loaded struct, holds: else the error is [ErrStale] and nothing happened. With IgnoreVersion in
// db.Clauses it moves unchecked, as a counter does, and value needs no more than its key: a row that is not there is
// gorm.ErrRecordNotFound then.
func Touch(db *gorm.DB, value any) error { return fault.Caused(db, reload.Touch(db, value)) }

// VerifyVersion checks that the row of value, a pointer to a loaded struct, still is at its version, and locks it, so that
// it stays there until the transaction of db ends: what was decided by reading it then holds. Else the error is [ErrStale].
// The lock is FOR SHARE, or the row lock on db, which may [Try] or have a [Timeout]. Without a transaction there is nothing
// to hold it: [ErrNoTransaction]. Where the dialect has no row locks, as SQLite, the transaction itself is what keeps
// writers out. Scopes, locks and [ExpectVersion] on db hold for it; conditions that leave the row out are an error.
func VerifyVersion(db *gorm.DB, value any) error { return fault.Caused(db, reload.Verify(db, value)) }

// VersionTrigger returns the DDL of a trigger that moves the integer version column of a table in every update that
// does not do so itself: for writers that know nothing of versions, such as psql, scripts and bulk statements of other
// programs. Writers that move the version, as gormlock, Rails and Hibernate do, are left alone; not so their updates that
// leave it alone on purpose, of unversioned columns or with [PreserveVersion]: those move it too, and the writer's struct is
// stale then. A version never goes back, nor to NULL: an update that would take it there moves it forward. Run it again
// and it is replaced. The table may be written with its schema.
func VersionTrigger(table, column string) string { return migrate.VersionTrigger(table, column) }

// ErrStale is the error of a write that came too late: the row was changed, or removed, since its struct was read.
// Nothing of the statement is stored. The error itself is a [*StaleError], or several joined ones for a batch.
var ErrStale = fault.ErrStale

// ErrVersionMissing is the error of a write that needs a version and has none: the struct was not read from its row.
// Read it first, name the version with [ExpectVersion], or say [IgnoreVersion].
var ErrVersionMissing = fault.ErrVersionMissing

// StaleError says which row a write found changed or gone. It is [ErrStale].
type StaleError struct {
	Table      string
	Op         string         // update, save, delete, upsert, touch or verify
	PrimaryKey map[string]any // by column; empty where the statement named no row
	Expected   any            // the version the write held: int64, uint32 (xmin) or time.Time, or the tags of If-Match as a string; nil where it was NULL or columns were compared
	Actual     any            // the version of the row; nil where it is unknown, NULL, or the row is gone
	Deleted    bool           // the row is gone, or soft-deleted

	columns []string // what IfUnchanged compared
	keys    []string // the columns of the key in their order
	own     bool     // the transaction itself has changed the row before
	soft    bool     // the row is there, soft-deleted
	cause   error    // what the server said
}

func newStaleError(s fault.Stale) error {
	return &StaleError{s.Table, s.Op, s.PrimaryKey, s.Expected, s.Actual, s.Deleted, s.Columns, s.Keys, s.Own, s.Soft, s.Cause}
}

// Error names the row, the version that was expected and the one the row has.
func (e *StaleError) Error() string {
	return (&fault.Stale{
		Table: e.Table, PrimaryKey: e.PrimaryKey, Keys: e.keys, Expected: e.Expected, Actual: e.Actual,
		Deleted: e.Deleted, Columns: e.columns, Own: e.own, Soft: e.soft, Cause: e.cause,
	}).Text()
}

func (e *StaleError) row() string { return fault.Row(e.Table, e.keys, e.PrimaryKey) }

// Is makes a StaleError ErrStale.
func (*StaleError) Is(target error) bool { return target == ErrStale }

// Unwrap is what the server said, where it was the server that noticed.
func (e *StaleError) Unwrap() error { return e.cause }
