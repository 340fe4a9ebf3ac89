package fault

import (
	"fmt"
	"strings"

	"github.com/gormlock/gormlock/fence"
)

// Text names the row, the expected version and the version of the row.
func (s *Stale) Text() string {
	var b strings.Builder
	b.WriteString("gormlock: ")
	b.WriteString(Row(s.Table, s.Keys, s.PrimaryKey))
	b.WriteString(": ")
	switch {
	case len(s.Columns) > 0 && !s.Deleted:
		if len(s.Columns) > 1 {
			b.WriteString("one of ")
		}
		fmt.Fprintf(&b, "%s changed since it was read", strings.Join(s.Columns, ", "))
	case s.Deleted && !s.Soft && len(s.Keys) == 0 && s.Op != "touch":
		b.WriteString("no row fits the conditions")
		if s.Expected != nil {
			fmt.Fprintf(&b, ", at version %s or any other", Version(s.Expected))
		}
	case s.Soft && s.Expected == nil:
		b.WriteString("the row is " + s.away())
	case s.Soft:
		fmt.Fprintf(&b, "version %s is stale, the row is %s", Version(s.Expected), s.away())
	case s.Deleted && s.Expected == nil && s.Op == "touch":
		b.WriteString("this root is gone, so its part was not written: use Unscoped if it is soft-deleted, or else delete or reassign the part with db.Exec")
	case s.Deleted && s.Expected == nil:
		b.WriteString("the row is " + s.away())
	case s.Deleted:
		fmt.Fprintf(&b, "version %s is stale, the row is %s", Version(s.Expected), s.away())
	case s.Actual == nil && s.Expected == nil && s.Cause != nil:
		b.WriteString("another transaction has changed " + s.one())
	case s.Actual == nil && s.Expected == nil:
		b.WriteString("some of the rows were not written, because they are stale or by the conditions, and the server does not say which: write them without conditions, or one at a time")
	case s.Actual == nil:
		fmt.Fprintf(&b, "version %s is stale", Version(s.Expected))
	default:
		fmt.Fprintf(&b, "version %s is stale, the row is at %s", Version(s.Expected), Version(s.Actual))
	}
	switch {
	case s.Own:
		b.WriteString(": this transaction itself changed it, through another struct or statement")
	case s.Given && isAhead(s.Expected, s.Actual):
		b.WriteString(": the row has not been at the expected version yet: is it that of another row?")
	case isAhead(s.Expected, s.Actual):
		b.WriteString(": the struct is ahead of its row: did something increment its version by hand?")
	}
	if s.Cause != nil {
		b.WriteString(": ")
		b.WriteString(s.Cause.Error())
	}
	return b.String()
}

// away says what happened to a row that the statement does not find.
func (s *Stale) away() string {
	switch {
	case s.Hidden && s.Soft:
		return "soft-deleted, or a clause of its model hides it"
	case s.Hidden:
		return "gone, or a clause of its model hides it"
	case s.Soft:
		return "soft-deleted"
	}
	return "gone"
}

// one refers to the row: "it" if its key is known, otherwise "a row of it".
func (s *Stale) one() string {
	if len(s.Keys) == 0 {
		return "a row of it"
	}
	return "it"
}

// isAhead reports whether a version is one that the row has not reached yet.
func isAhead(expected, actual any) bool {
	e, isNumber := expected.(int64)
	a, areBoth := actual.(int64)
	return isNumber && areBoth && e > a
}

// Text names the row, the token of the write, and the one that refused it.
func (f *Fenced) Text() string {
	var b strings.Builder
	b.WriteString("gormlock: ")
	if f.Table != "" {
		b.WriteString(Row(f.Table, f.Keys, f.PrimaryKey))
		b.WriteString(": ")
	}
	switch {
	case f.Passed:
		fmt.Fprintf(&b, "token %s is superseded, the row was written with a later one", f.Token)
	case f.Latest.IsZero():
		fmt.Fprintf(&b, "token %s was never issued in the table %s that the search_path finds, or its issue was rolled back", f.Token, fence.Table)
	case f.Latest.Name == "":
		fmt.Fprintf(&b, "token %s is superseded, the row was written with %d", f.Token, f.Latest.Number)
	default:
		fmt.Fprintf(&b, "token %s is superseded, %s has been issued", f.Token, f.Latest)
	}
	return b.String()
}

// Text names the row and the columns, but no values: a log may be read by people who
// must not see them.
func (c *Conflict) Text() string {
	names := make([]string, len(c.Columns))
	for i, column := range c.Columns {
		names[i] = column.Column
	}
	return fmt.Sprintf("gormlock: %s: %s was changed here, and to another value in the row", c.Row, strings.Join(names, ", "))
}
