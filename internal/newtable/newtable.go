// Package newtable creates a table of gormlock's own where there is none.
package newtable

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/gormlock/gormlock/internal/absent"
	"github.com/gormlock/gormlock/internal/otherdb"
)

// Execer runs a statement: a *sql.DB, *sql.Conn or *sql.Tx.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Table is one that may be missing.
type Table struct {
	Name   string // for people
	Quoted string // for SQL
	DDL    string
	Lock   int64 // the advisory lock under which it is created
}

// Migration creates the table where the search_path finds none. Programs that start together take turns, because IF NOT
// EXISTS alone fails in some of them. If the table exists, nothing is done for which a role would need the right to create
// tables.
func (t Table) Migration() string {
	return fmt.Sprintf(`DO $gormlock$ BEGIN
	IF to_regclass('%s') IS NULL THEN
		PERFORM pg_advisory_xact_lock(%d);
		%s;
%s	END IF;
END $gormlock$`, strings.ReplaceAll(t.Quoted, "'", "''"), t.Lock, t.DDL, HasIndexes(t.Quoted, t.DDL))
}

var index = regexp.MustCompile(`INDEX IF NOT EXISTS (\w+) ON`)

// Indexes are the names of the indexes that a DDL makes beside the key.
func Indexes(ddl string) []string {
	var names []string
	for _, found := range index.FindAllStringSubmatch(ddl, -1) {
		names = append(names, found[1])
	}
	return names
}

// HasIndexes fails a migration, in its own language, if the table does not have its indexes: IF NOT EXISTS makes none where another
// table has one of the name, as this table has after a rename.
func HasIndexes(quoted, ddl string) string {
	var text strings.Builder
	for _, index := range Indexes(ddl) {
		fmt.Fprintf(&text, "\t\tIF %s THEN\n\t\t\tRAISE duplicate_table USING MESSAGE = 'another table has the index %[2]s, as after a rename: ALTER INDEX %[2]s RENAME TO %[2]s_old';\n\t\tEND IF;\n",
			LacksIndex(quoted, index), index)
	}
	return text.String()
}

// LacksIndex is the condition that the table has no index of this name.
func LacksIndex(quoted, index string) string {
	return fmt.Sprintf("NOT EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = to_regclass('%s') AND c.relname = '%s')",
		strings.ReplaceAll(quoted, "'", "''"), index)
}

// Create runs the migration. On failure nothing was created. On another database than PostgreSQL the error says which it is.
func (t Table) Create(ctx context.Context, db Execer) error {
	what := "create table " + t.Name
	if absent.Is(db) {
		return errors.New("gormlock: " + what + " in a nil database, give it a *sql.DB, *sql.Conn or *sql.Tx")
	}
	if other := otherdb.Under(db); other != nil {
		return other.Refusal(what, nil)
	}
	if _, err := db.ExecContext(ctx, t.Migration()); err != nil {
		if other := otherdb.Said(err); other != nil {
			return other.Refusal(what, err)
		}
		return fmt.Errorf("gormlock: %s: %w", what, err)
	}
	return nil
}
