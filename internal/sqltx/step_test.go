package sqltx_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/sqltx"
)

// TestEndsWhereTheServerIsSilent: a commit ends with the ctx of the transaction, and a rollback ends by itself. The
// connection is closed then.
func TestEndsWhereTheServerIsSilent(t *testing.T) {
	t.Parallel()
	for name, travelling := range map[string]sqltx.Texts{"the driver begins": nil, "texts begin": texts{after: "SELECT 1", clean: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, dsn := pgtest.Tap(t, pgtest.DSN(t))
			db := pgtest.SQLDB(t, pgtest.Through(dsn), pgtest.MaxConns(1))
			pool := sqltx.New(db)
			begin := func(ctx context.Context) (*sql.Tx, *ending) {
				w := &ending{}
				tx, err := pool.Begin(ctx, &sqltx.Opening{Texts: travelling, Watcher: w})
				if err != nil {
					t.Fatal(err)
				}
				exec(t, tx, "SELECT 1")
				return tx, w
			}
			silently := func(end func() error) (time.Duration, error) {
				proxy.Stall()
				defer proxy.Resume()
				began := time.Now()
				err := end()
				return time.Since(began), err
			}
			tx, w := begin(context.Background())
			if took, err := silently(tx.Rollback); err == nil || took > 8*time.Second {
				t.Errorf("a rollback took %s: %v", took, err)
			}
			want(t, w.heard, "ended, committed false")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			tx, _ = begin(ctx)
			if took, err := silently(tx.Commit); !errors.Is(err, context.DeadlineExceeded) || took > 8*time.Second {
				t.Errorf("a commit took %s: %v", took, err)
			}
			if opened := proxy.Opened(); opened != 2 {
				t.Errorf("%d connections for two transactions", opened)
			}
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if took, err := silently(func() error {
				_, err := pool.Begin(ctx, &sqltx.Opening{Texts: travelling})
				return err
			}); !errors.Is(err, context.DeadlineExceeded) || took > 8*time.Second {
				t.Errorf("a begin took %s: %v", took, err)
			}
		})
	}
}
