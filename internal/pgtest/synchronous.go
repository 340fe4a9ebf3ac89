package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"
)

// MakeCommitsWait makes the commits of a server wait for a standby that does not exist, and returns when they do. The checkpointer tells the other
// processes that commits wait, some time later. Only a commit that waits shows that this has happened.
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
