// Package keynames keeps the names of lock keys in a table, so that readers of pg_locks can name the lock behind a number. A key only gets a row if
// somebody waited for it or held it for longer than [After].
package keynames

import (
	"context"

	"github.com/gormlock/gormlock/internal/newtable"
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
type Execer = newtable.Execer

// Migrate creates the table of names if the search_path finds none. Any number of programs may call it at once. On failure nothing was created.
func Migrate(ctx context.Context, db Execer) error {
	return newtable.Table{Name: Table, Quoted: Table, DDL: Schema, Lock: 7452331120164529999}.Create(ctx, db)
}
