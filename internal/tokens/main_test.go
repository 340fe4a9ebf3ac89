package tokens_test

import (
	"database/sql"
	"testing"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/tokens"
	"github.com/gormlock/gormlock/lockkey"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func table(t *testing.T) *sql.DB {
	t.Helper()
	db := pgtest.SQLDB(t, pgtest.Schema())
	if err := fence.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return db
}

func key(t *testing.T, k lockkey.Key) tokens.Key {
	t.Helper()
	of, err := fence.For(k, 0)
	if err != nil {
		t.Fatal(err)
	}
	return tokens.Key{Space: of.Space, ID: of.ID, Name: of.Name}
}
