package fence

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/gormlock/gormlock/internal/otherdb"
)

// Table is the name of the token table.
const Table = "gormlock_fence"

// Schema is the DDL of the token table, for those who keep their own migrations.
const Schema = `CREATE TABLE IF NOT EXISTS gormlock_fence (
	space smallint NOT NULL, -- 1: the key is one bigint, 2: two int4 (objsubid of pg_locks)
	id    bigint   NOT NULL,
	token bigint   NOT NULL, -- the latest issued; its upper bits are the server's timeline
	name  text     NOT NULL, -- the key for people
	PRIMARY KEY (space, id)
) WITH (fillfactor = 50)`

// Execer runs a statement: a *sql.DB, *sql.Conn or *sql.Tx.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// migration creates the table where it is missing. Programs that start together
// take turns, for IF NOT EXISTS alone fails in some of them; and a role that may not
// create tables is asked for nothing when the table is there.
const migration = `DO $gormlock$ BEGIN
	IF to_regclass('gormlock_fence') IS NULL THEN
		PERFORM pg_advisory_xact_lock(7452331120164529997);
		` + Schema + `;
	END IF;
END $gormlock$`

// Migrate creates the token table if the search_path finds none. Any number of
// programs may call it at once. On failure nothing was created. On another database
// than PostgreSQL it is advisory.ErrNotPostgres.
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
