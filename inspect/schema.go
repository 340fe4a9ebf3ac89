package inspect

import (
	"context"

	"github.com/gormlock/gormlock/internal/keynames"
)

// Table is the name of the table in which gormlock.WithKeyNames keeps names of keys.
const Table = keynames.Table

// Schema is the DDL of the table of names, for those who keep their own migrations.
const Schema = keynames.Schema

// Execer runs a statement: a *sql.DB, *sql.Conn or *sql.Tx.
type Execer = keynames.Execer

// Migrate creates the table of names if the search_path finds none. Any number of
// programs may call it at once. On failure nothing was created. On another database than
// PostgreSQL it is advisory.ErrNotPostgres.
func Migrate(ctx context.Context, db Execer) error { return keynames.Migrate(ctx, db) }
