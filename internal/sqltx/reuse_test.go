package sqltx_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/sqltx"
)

// TestUsedAgain: what the pool keeps between two uses has nothing borrowed, and says so where nothing can be.
func TestUsedAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := pgtest.SQLDB(t, pgtest.MaxConns(1))
	pool := sqltx.New(db)
	t.Cleanup(func() { _ = pool.Close() })
	stmt, err := pool.PrepareContext(ctx, "SELECT $1::int + 1")
	must(t, err)
	defer func() { _ = stmt.Close() }()
	use := func(ctx context.Context) error {
		var n int
		if err := stmt.QueryRowContext(ctx, 1).Scan(&n); err != nil {
			return err
		}
		tx, err := pool.Begin(ctx, &sqltx.Opening{})
		if err != nil {
			return err
		}
		inside := tx.StmtContext(ctx, stmt)
		defer func() { _ = inside.Close() }()
		return errors.Join(inside.QueryRowContext(ctx, n).Scan(&n), tx.Rollback())
	}
	for range 3 {
		must(t, use(ctx))
	}
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d connections in use", n)
	}

	only, err := db.Conn(ctx)
	must(t, err)
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	begin := func(ctx context.Context) error {
		_, err := pool.Begin(ctx, &sqltx.Opening{})
		return err
	}
	query := func(ctx context.Context) error { return stmt.QueryRowContext(ctx, 1).Scan(new(int)) }
	exec := func(ctx context.Context) error {
		_, err := stmt.ExecContext(ctx, 1)
		return err
	}
	for name, fails := range map[string]func(context.Context) error{"begin": begin, "query": query, "exec": exec} {
		if err := fails(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s while another has the only connection: %v", name, err)
		}
	}
	must(t, only.Close())
	for range 3 {
		must(t, use(ctx))
	}

	must(t, db.Close())
	for name, fails := range map[string]func(context.Context) error{"begin": begin, "query": query, "exec": exec} {
		if err := fails(ctx); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s on a pool that is closed: %v", name, err)
		}
	}
}

// TestUsedAgainAfterEachEnd: however a transaction ended, the next one begins on a connection that is fit for it.
func TestUsedAgainAfterEachEnd(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.MaxConns(1))
	pool := sqltx.New(db)
	for name, end := range map[string]func(tx *sql.Tx, cancel func()){
		"commit":      func(tx *sql.Tx, _ func()) { _ = tx.Commit() },
		"rollback":    func(tx *sql.Tx, _ func()) { _ = tx.Rollback() },
		"ctx":         func(tx *sql.Tx, cancel func()) { cancel(); _ = tx.Rollback() },
		"commit, ctx": func(tx *sql.Tx, cancel func()) { go cancel(); _ = tx.Commit() },
		"error":       func(tx *sql.Tx, _ func()) { _, _ = tx.Exec("SELECT 1/0"); _ = tx.Commit() },
		"lost backend": func(tx *sql.Tx, _ func()) {
			_, _ = tx.Exec("SELECT pg_terminate_backend(pg_backend_pid())")
			_ = tx.Commit()
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				ctx, cancel := context.WithCancel(t.Context())
				tx, err := pool.Begin(ctx, &sqltx.Opening{Watcher: &ending{}})
				must(t, err)
				var state string
				must(t, tx.QueryRow("SELECT current_setting('application_name') || count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'").Scan(&state))
				if !strings.HasSuffix(state, "0") {
					t.Error("it has the locks of the transaction before:", state)
				}
				_, err = tx.Exec("SELECT pg_advisory_xact_lock(7)")
				must(t, err)
				end(tx, cancel)
				cancel()
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
