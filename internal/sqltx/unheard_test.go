package sqltx_test

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/sqltx"
	"github.com/gormlock/gormlock/internal/wiretap"
)

// Outside of a transaction the pool sends a statement once, in the simple protocol too, and says when its answer is lost.
func TestUnheard(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(ctx context.Context, pool *sqltx.Pool, text string) error{
		"Exec": func(ctx context.Context, pool *sqltx.Pool, text string) error {
			_, err := pool.ExecContext(ctx, text, 1)
			return err
		},
		"Query": func(ctx context.Context, pool *sqltx.Pool, text string) error {
			rows, err := pool.QueryContext(ctx, text, 1)
			if err != nil {
				return err
			}
			return errors.Join(rows.Err(), rows.Close()) //nolint:sqlclosecheck // its error is looked at
		},
		"QueryRow": func(ctx context.Context, pool *sqltx.Pool, text string) error {
			err := pool.QueryRowContext(ctx, text, 1).Scan()
			if errors.Is(err, sql.ErrNoRows) {
				err = nil
			}
			return err
		},
		"a prepared statement": func(ctx context.Context, pool *sqltx.Pool, text string) error {
			prepared, err := pool.PrepareContext(ctx, text)
			if err == nil {
				_, err = prepared.ExecContext(ctx, 1)
				err = errors.Join(err, prepared.Close()) //nolint:sqlclosecheck // its error is looked at
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, dsn := pgtest.Tap(t, pgtest.SchemaDSN(t))
			db := pgtest.SQLDB(t, pgtest.Through(dsn), pgtest.SimpleProtocol())
			_, err := db.ExecContext(t.Context(), "CREATE TABLE t (n int)")
			must(t, err)
			pool := sqltx.New(db)
			t.Cleanup(func() { must(t, pool.Close()) })
			must(t, send(t.Context(), pool, "INSERT INTO t SELECT $1 WHERE false"))
			var sent atomic.Int64
			proxy.OnQuery(func(string) wiretap.Action {
				sent.Add(1)
				return wiretap.CutAnswer
			})
			if err := send(t.Context(), pool, "INSERT INTO t VALUES ($1)"); !errors.Is(err, sqltx.ErrUnheard) || sent.Load() != 1 {
				t.Errorf("sent %d times: %v", sent.Load(), err)
			}
			proxy.OnQuery(nil)
		})
	}
}

// Rows that are read slowly outlive what the pool has opened to read them, and give their connection back.
func TestUnheard_rowsThatStayOpen(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.SimpleProtocol(), pgtest.MaxConns(1))
	pool := sqltx.New(db)
	rows, err := pool.QueryContext(t.Context(), "SELECT generate_series(1, $1)", 3)
	must(t, err)
	defer rows.Close()
	<-time.After(200 * time.Millisecond)
	must(t, pool.Close())
	n := 0
	for rows.Next() {
		n++
	}
	if must(t, rows.Err()); n != 3 {
		t.Errorf("%d rows", n)
	}
	must(t, rows.Close())
	must(t, db.PingContext(t.Context())) // there is one connection
}
