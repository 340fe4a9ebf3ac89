package pgtest

import "testing"

// Poolers start a pooler in front of the server of a connection string, and return one that leads through it.
var Poolers = map[string]func(t testing.TB, dsn string) string{
	"PgBouncer": func(t testing.TB, dsn string) string {
		t.Helper()
		return StartPgBouncer(t, dsn, "pool_mode = transaction", "server_login_retry = 1").DSN()
	},
	"Pgpool": func(t testing.TB, dsn string) string {
		t.Helper()
		return Pgpool(t, []string{dsn})
	},
}
