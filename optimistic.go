package gormlock

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/migrate"
	"github.com/gormlock/gormlock/internal/reload"
)

// VersionClause changes what one statement does about versions: see [IgnoreVersion], [ExpectVersion] and [IfUnchanged].
// Use it in db.Clauses and gorm.G, and its method ModifyStatement in the Scopes of the generics API. Put it on the
// statement itself: in a hook, a group of conditions or a join it is an error.
type VersionClause struct{ versionClauses }

// versionClauses hides how the clause gets into a statement.
type versionClauses = guard.Clause

// IgnoreVersion lets one statement write without a check. The version still moves, so that others who have read the row
// notice the change. A loaded struct adds one to its own version. If others wrote in between, it is stale afterwards.
// If the version is a time, an xmin, or 0 in the modes rails and hibernate, the struct is stale after an update: read it again.
func IgnoreVersion() VersionClause {
	return VersionClause{guard.IgnoreVersion()}
}

// ExpectVersion lets one statement write only rows at this version, and leaves rows at other versions as they are. If it writes no
// row, the error is [ErrStale]. If a bulk statement writes some rows, there is no error, and RowsAffected says how many. The version in
// the struct does not matter. Two different ExpectVersion clauses are an error.
//
// Use it for a version that came in a form, and with gorm.G, whose updates have no struct. The version is an integer, or a
// time.Time for a temporal version column.
//
// Put it on the write. On a read and in a sub-query it is an error. FirstOrCreate begins with a read.
func ExpectVersion(version any) VersionClause {
	return VersionClause{guard.ExpectVersion(version)}
}

// PreserveVersion lets one update, [Touch] or upsert leave the version of its rows as it is. Use it for changes that others need not notice, such as
// the time of a visit, and for upserts like those of Rails. The version is still compared. If others have read the row before and write all columns,
// they overwrite such a change without an error.
//
// An upsert with it refuses structs that were read from their rows, because it could not tell an update from an insert. The
// structs of other upserts have the version of their row afterwards, except where the upsert left the row as it was (DoNothing,
// or an OnConflict.Where that is false): read those again.
func PreserveVersion() VersionClause {
	return VersionClause{guard.PreserveVersion()}
}

// IfUnchanged lets an update or delete write its row only if the named columns still have the values of before, a pointer
// to the struct as it was read. It is for tables without a version. Name fields or columns; no name means all columns.
// NULL equals NULL, and equals the zero value of a field that cannot hold NULL. Json is compared as jsonb, times at the precision of their
// column. If a column has changed, the error is [ErrStale]. Put it on the write itself, as [ExpectVersion].
func IfUnchanged(before any, names ...string) VersionClause {
	return VersionClause{guard.IfUnchanged(before, names)}
}

// Touch moves the version of a row, and its update time if the model has one, although no column changes. Use it for the
// owner of a changed collection, or the parent of a changed child. value is a pointer to the loaded struct. If the row is
// at another version, the error is [ErrStale], and nothing happened. With IgnoreVersion in db.Clauses nothing is compared, and
// value needs only its key. Then a missing row is gorm.ErrRecordNotFound.
func Touch(db *gorm.DB, value any) error { return fault.Caused(db, reload.Touch(db, value)) }

// VerifyVersion checks that a row is still at the version of value, a pointer to the loaded struct, and locks the row until
// the transaction of db ends. So what you decided by reading it stays true until then. At another version the error is
// [ErrStale]. The lock is FOR SHARE within [DefaultTimeout], or the row lock on db, which may have [Try] or [Timeout]. Outside of
// a transaction the error is [ErrNoTransaction]. On a database without row locks, such as SQLite, the transaction itself excludes writers.
// VerifyVersion respects scopes, locks and [ExpectVersion] on db. If conditions on db leave the row out, that is an error.
func VerifyVersion(db *gorm.DB, value any) error { return fault.Caused(db, reload.Verify(db, value)) }

// VersionTrigger returns the DDL of a trigger that moves the integer version column of a table in every update that does
// not do so itself. It is for writers that do not know of versions: psql, scripts, bulk statements of other programs. It
// changes nothing for writers that move the version, such as gormlock, Rails and Hibernate. But it also moves the version
// in updates that keep it on purpose ([PreserveVersion], unversioned columns), and the struct of such a writer is stale
// afterwards. With the trigger a version never goes back, and never becomes NULL. The DDL can be run again, and by
// several programs at once. The table may be written with its schema.
func VersionTrigger(table, column string) string { return migrate.VersionTrigger(table, column) }

// ErrStale says that the row of a write was changed or removed after its struct was read. Nothing of the statement is
// stored. The error itself is a [*StaleError]; for a batch it is several, joined.
var ErrStale = fault.ErrStale

// ErrVersionMissing says that a write needs a version and its struct has none, because it was not read from its row. Read
// it first, name the version with [ExpectVersion], or use [IgnoreVersion].
var ErrVersionMissing = fault.ErrVersionMissing

// StaleError says which row a write found changed or gone. It is [ErrStale].
type StaleError struct {
	Table      string
	Op         string         // update, save, delete, upsert, touch or verify
	PrimaryKey map[string]any // by column; empty where the statement named no row
	Expected   any            // the version that the write expected: int64, uint32 (xmin) or time.Time, or the tags of If-Match as a string; nil if it was NULL or columns were compared
	Actual     any            // the version of the row; nil if it is unknown, NULL, or the row is gone
	Deleted    bool           // the row is gone, or soft-deleted

	columns      []string // what IfUnchanged compared
	keys         []string // the columns of the key in their order
	own          bool     // the transaction itself has moved the row away from that version
	given        bool     // the caller named that version
	soft, hidden bool     // the row exists: it is soft-deleted, or a clause of its model hides it
	cause        error    // what the server said
}

func newStaleError(s fault.Stale) error {
	return &StaleError{s.Table, s.Op, s.PrimaryKey, s.Expected, s.Actual, s.Deleted, s.Columns, s.Keys, s.Own, s.Given, s.Soft, s.Hidden, s.Cause}
}

// Error names the row, the version that was expected and the one the row has.
func (e *StaleError) Error() string {
	return (&fault.Stale{
		Table: e.Table, Op: e.Op, PrimaryKey: e.PrimaryKey, Keys: e.keys, Expected: e.Expected, Actual: e.Actual,
		Deleted: e.Deleted, Columns: e.columns, Own: e.own, Given: e.given, Soft: e.soft, Hidden: e.hidden, Cause: e.cause,
	}).Text()
}

func (e *StaleError) row() string { return fault.Row(e.Table, e.keys, e.PrimaryKey) }

// Is makes a StaleError ErrStale.
func (*StaleError) Is(target error) bool { return target == ErrStale }

// Unwrap returns the error of the server, if the server noticed it.
func (e *StaleError) Unwrap() error { return e.cause }
