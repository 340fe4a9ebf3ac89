package pgtest

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/sqlstate"
)

var schemas struct {
	sync.Mutex
	names map[testing.TB]string
}

// SchemaDSN returns the connection string into the test's own schema, to which the option Schema connects. A subtest shares its parent's schema
// with Through(dsn).
func SchemaDSN(t testing.TB) string {
	t.Helper()
	return newOptions(t, []Option{Schema()}).dsn
}

// schemaOf creates the schema of a test on its first call.
func schemaOf(t testing.TB, dsn string) string {
	t.Helper()
	schemas.Lock()
	defer schemas.Unlock()
	if name, ok := schemas.names[t]; ok {
		return name
	}
	name := "test_" + strings.ToLower(rand.Text()[:16])
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := home.exec(ctx, dsn, "create schema "+pgx.Identifier{name}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	if schemas.names == nil {
		schemas.names = map[testing.TB]string{}
	}
	schemas.names[t] = name
	t.Cleanup(func() {
		schemas.Lock()
		delete(schemas.names, t)
		schemas.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		drop := func() error { return home.exec(ctx, dsn, "drop schema "+pgx.Identifier{name}.Sanitize()+" cascade") }
		err := drop()
		for sqlstate.Is(err, sqlstate.DeadlockDetected) { // connections that end drop their temporary tables
			err = drop()
		}
		if err != nil {
			t.Errorf("drop the test's schema: %v", err)
		}
	})
	return name
}
