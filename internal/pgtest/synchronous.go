package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"
)

// MakeCommitsWait makes the commits of a server wait for a standby that there is not. It returns when they do: the checkpointer tells
// the other processes that commits wait, when it comes to it, and nothing shows that but a commit which does.
func MakeCommitsWait(t testing.TB, db *sql.DB) {
	t.Helper()
	for _, text := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()"} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	Eventually(t, "a commit that waits for a standby", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := db.ExecContext(ctx, "SELECT pg_logical_emit_message(true, 'gormlock', '')")
		return errors.Is(err, context.DeadlineExceeded)
	})
}
