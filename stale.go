package gormlock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrStale is the error of a write that came too late: the row was changed, or removed, since its struct was read.
// Nothing of the statement is stored. The error itself is a [*StaleError], or several joined ones for a batch.
var ErrStale = errors.New("gormlock: stale version")

// ErrVersionMissing is the error of a write that needs a version and has none: the struct was not read from its row.
// Read it first, name the version with [ExpectVersion], or say [IgnoreVersion].
var ErrVersionMissing = errors.New("gormlock: version missing")

// StaleError says which row a write found changed or gone. It is [ErrStale].
type StaleError struct {
	Table      string
	Op         string         // update, save, delete, upsert, touch or verify
	PrimaryKey map[string]any // by column; empty where the statement named no row
	Expected   any            // the version the write held: int64, uint32 (xmin) or time.Time; nil where it was NULL or columns were compared
	Actual     any            // the version of the row; nil where it is unknown, NULL, or the row is gone
	Deleted    bool           // the row is gone, or soft-deleted

	columns []string // what IfUnchanged compared
	keys    []string // the columns of the key in their order
	cause   error    // what the server said
}

// Error names the row, the version that was expected and the one the row has.
func (e *StaleError) Error() string {
	var b strings.Builder
	b.WriteString("gormlock: ")
	b.WriteString(e.row())
	b.WriteString(": ")
	switch {
	case len(e.columns) > 0 && !e.Deleted:
		if len(e.columns) > 1 {
			b.WriteString("one of ")
		}
		fmt.Fprintf(&b, "%s changed since it was read", strings.Join(e.columns, ", "))
	case e.Deleted:
		fmt.Fprintf(&b, "version %s is stale, the row is gone", showVersion(e.Expected))
	case e.Actual == nil:
		fmt.Fprintf(&b, "version %s is stale", showVersion(e.Expected))
	default:
		fmt.Fprintf(&b, "version %s is stale, the row is at %s", showVersion(e.Expected), showVersion(e.Actual))
	}
	if e.cause != nil {
		b.WriteString(": ")
		b.WriteString(e.cause.Error())
	}
	return b.String()
}

func (e *StaleError) row() string { return rowName(e.Table, e.keys, e.PrimaryKey) }

// Is makes a StaleError ErrStale.
func (*StaleError) Is(target error) bool { return target == ErrStale }

// Unwrap is what the server said, where it was the server that noticed.
func (e *StaleError) Unwrap() error { return e.cause }

// rowName is `accounts id=7`, for people.
func rowName(table string, columns []string, key map[string]any) string {
	if len(columns) == 0 {
		for column := range key {
			columns = append(columns, column)
		}
		slices.Sort(columns)
	}
	var b strings.Builder
	b.WriteString(table)
	for _, column := range columns {
		fmt.Fprintf(&b, " %s=%v", column, key[column])
	}
	return b.String()
}
