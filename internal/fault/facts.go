package fault

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gormlock/gormlock/fence"
)

// Stale is what is known about a row that a write found changed or gone: see StaleError of the root package.
type Stale struct {
	Table, Op        string
	PrimaryKey       map[string]any
	Keys             []string // the columns of the key in their order
	Expected, Actual any
	Deleted          bool
	Columns          []string // what IfUnchanged compared
	Own              bool     // the transaction itself has moved the row from the expected version
	Given            bool     // the caller named that version: it is not in a struct
	Soft             bool     // the row exists, but is soft-deleted
	Hidden           bool     // a clause of the model hides the row, or may do so
	Cause            error    // what the server said
}

// Fenced is what is known about a write by a superseded holder: see FencedError of the root package.
type Fenced struct {
	Table, Op     string
	PrimaryKey    map[string]any
	Keys          []string // the columns of the key in their order
	Token, Latest fence.Token
	Passed        bool  // some row has a later token, but it is not known which
	Cause         error // what the server said
}

// Conflict is what is known about a struct that cannot be merged with its row: see ConflictError of the root package.
type Conflict struct {
	Table   string
	Row     string // for people
	Columns []ConflictColumn
}

// ConflictColumn is a column that was changed here, and changed to another value in the row.
type ConflictColumn struct {
	Column             string
	Base, Mine, Theirs any
}

// Types makes the errors that callers get. Their types are in the root package, where users read about them. The root imports this package, so the
// root sets these constructors.
var Types struct {
	Stale    func(Stale) error
	Fenced   func(Fenced) error
	Conflict func(Conflict) error
}

// Err returns the error that callers get.
func (s *Stale) Err() error { return Types.Stale(*s) }

// Err returns the error that callers get.
func (f *Fenced) Err() error { return Types.Fenced(*f) }

// Err returns the error that callers get.
func (c Conflict) Err() error { return Types.Conflict(c) }

// Row names a row for people: `accounts id=7`.
func Row(table string, columns []string, key map[string]any) string {
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

// Version returns a version for people.
func Version(v any) string {
	if t, ok := v.(time.Time); ok {
		return t.Format(time.RFC3339Nano)
	}
	if v == nil {
		return "NULL"
	}
	return fmt.Sprint(v)
}
