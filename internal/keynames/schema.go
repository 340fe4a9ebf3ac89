// Package keynames keeps the names of lock keys in a table, so that whoever looks at
// pg_locks can say which lock a number is. Only keys that were waited for or held for
// longer than [After] get a row.
package keynames

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/gormlock/gormlock/internal/otherdb"
)

// Table is the name of the table of names.
const Table = "gormlock_key_name"

// Schema is the DDL of the table of names.
const Schema = `CREATE TABLE IF NOT EXISTS gormlock_key_name (
	space   smallint    NOT NULL, -- 1: the key is one bigint, 2: two int4 (objsubid of pg_locks)
	id      bigint      NOT NULL,
	name    text        NOT NULL, -- the key for people
	scope   text        NOT NULL, -- what it was taken for last: transaction, session
	seen_at timestamptz NOT NULL, -- when it was last waited for or held for long, give or take an hour
	PRIMARY KEY (space, id)
)`

// Execer runs a statement: a *sql.DB, *sql.Conn or *sql.Tx.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// migration creates the table where it is missing. Programs that start together take
// turns, for IF NOT EXISTS alone fails in some of them; and a role that may not create
// tables is asked for nothing when the table is there.
const migration = `DO $gormlock$ BEGIN
	IF to_regclass('gormlock_key_name') IS NULL THEN
		PERFORM pg_advisory_xact_lock(7452331120164529999);
		` + Schema + `;
	END IF;
END $gormlock$`

// Migrate creates the table of names where the search_path finds none. Any number of
// programs may call it at once. On failure nothing was created.
func Migrate(ctx context.Context, db Execer) error {
	const what = "create table " + Table
	if other := otherdb.Under(db); other != nil {
		return other.Refusal(what, nil)
	}
	if _, err := db.ExecContext(ctx, migration); err != nil {
		if other := otherdb.Said(err); other != nil {
			return other.Refusal(what, err)
		}
		return fmt.Errorf("gormlock: create table %s: %w", Table, err)
	}
	return nil
}
