package adapters

import (
	"fmt"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// Providers that start at once migrate one after the other, even if a migration builds an index concurrently: a
// waiter that blocked would be taken for a deadlock with it.
func TestGoose_providersAtOnce(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	migrations := fstest.MapFS{
		"00001_table.sql": {Data: []byte("-- +goose Up\nCREATE TABLE docs (id int);\nINSERT INTO docs SELECT generate_series(1, 1000);\n")},
		"00002_index.sql": {Data: []byte("-- +goose NO TRANSACTION\n-- +goose Up\nCREATE INDEX CONCURRENTLY docs_id ON docs (id);\n")},
		"00003_more.sql":  {Data: []byte("-- +goose Up\nINSERT INTO docs SELECT generate_series(1, 1000);\n")},
	}
	locker := advisory.SessionLocker(pgtest.Key(t, "migrate"))
	const providers = 6
	applied := make([]int, providers)
	var wg sync.WaitGroup
	for i := range providers {
		db := pgtest.SQLDB(t, pgtest.Through(dsn))
		provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations, goose.WithSessionLocker(locker))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			results, err := provider.Up(t.Context())
			if err != nil {
				t.Error(err)
			}
			applied[i] = len(results)
		})
	}
	wg.Wait()
	all := 0
	for _, n := range applied {
		all += n
	}
	if all != len(migrations) {
		t.Errorf("%d migrations were applied: %v", all, applied)
	}
	var rows int
	var valid bool
	db := pgtest.SQLDB(t, pgtest.Through(dsn))
	err := db.QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM docs), (SELECT indisvalid FROM pg_index WHERE indexrelid = 'docs_id'::regclass)").Scan(&rows, &valid)
	if err != nil || rows != 2000 || !valid {
		t.Error(fmt.Errorf("%d rows, index valid %v: %w", rows, valid, err))
	}
}
