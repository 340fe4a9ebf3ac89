package fence

import (
	"context"
	"database/sql"

	"github.com/gormlock/gormlock/internal/newtable"
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

// Migrate creates the token table if the search_path finds none. Any number of
// programs may call it at once. On failure nothing was created. On another database
// than PostgreSQL it is advisory.ErrNotPostgres.
func Migrate(ctx context.Context, db Execer) error {
	return newtable.Table{Name: Table, Quoted: Table, DDL: Schema, Lock: 7452331120164529997}.Create(ctx, db)
}
