package sqltx_test

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/sqltx"
)

// forgetting is a Watcher that says when a transaction is not waited for any more.
type forgetting struct {
	ending
	forgotten chan<- bool
}

func (f *forgetting) Forgotten() { f.forgotten <- true }

// waiting counts the goroutines of database/sql that wait for the end of a transaction.
func waiting() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "awaitDone(")
}

// goesDown waits until as few as before wait, and no connection is in use.
func goesDown(t *testing.T, db *sql.DB, before int) {
	t.Helper()
	look, late := time.NewTicker(20*time.Millisecond), time.After(20*time.Second)
	defer look.Stop()
	for waiting() > before || db.Stats().InUse > 0 {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("%d goroutines wait for abandoned transactions, which have %d connections", waiting()-before, db.Stats().InUse)
		}
	}
}

// A transaction that its ctx ends, and nobody else, leaves neither a goroutine nor a connection behind, and its watcher forgets it. So it is
// however it stood when ctx ended.
func TestAbandoned(t *testing.T) { //nolint:paralleltest // it counts goroutines
	execute := func(text string) func(context.Context, *sql.Tx) {
		return func(_ context.Context, tx *sql.Tx) { _, _ = tx.ExecContext(t.Context(), text) }
	}
	for name, use := range map[string]func(ctx context.Context, tx *sql.Tx){
		"unused":            func(context.Context, *sql.Tx) {},
		"a statement":       execute("SELECT 1"),
		"a failed one":      execute("SELECT 1/0"),
		"ended by a text":   execute("ROLLBACK"),
		"its server ended":  execute("SELECT pg_terminate_backend(pg_backend_pid())"),
		"a statement later": func(ctx context.Context, tx *sql.Tx) { context.AfterFunc(ctx, func() { execute("SELECT 1")(ctx, tx) }) },
		"open rows": func(ctx context.Context, tx *sql.Tx) {
			rows, err := tx.QueryContext(ctx, "SELECT generate_series(1, 3)") //nolint:sqlclosecheck,rowserrcheck // ctx closes them
			if must(t, err); !rows.Next() {
				t.Error("no row")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := pgtest.SQLDB(t, pgtest.MaxConns(4))
			pool := sqltx.New(db)
			pool.WaitFor(50 * time.Millisecond)
			before := waiting()
			forgotten := make(chan bool, 20)
			var last *sql.Tx
			for range 10 {
				ctx, cancel := context.WithCancel(t.Context())
				tx, err := pool.Begin(ctx, &sqltx.Opening{Watcher: &forgetting{forgotten: forgotten}})
				must(t, err)
				use(ctx, tx)
				cancel()
				last = tx
			}
			goesDown(t, db, before)
			for range 10 {
				<-forgotten
			}
			if err := last.Commit(); !errors.Is(err, sql.ErrTxDone) {
				t.Error(err)
			}
			must(t, pool.Close())
			if len(forgotten) > 0 {
				t.Errorf("forgotten %d times too often", len(forgotten))
			}
		})
	}
}

// Close does not wait for the program to end them.
func TestAbandoned_thenClosed(t *testing.T) { //nolint:paralleltest // it counts goroutines
	db := pgtest.SQLDB(t, pgtest.MaxConns(4))
	pool := sqltx.New(db)
	before := waiting()
	forgotten := make(chan bool, 20)
	var abandoned []*sql.Tx
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		tx, err := pool.Begin(ctx, &sqltx.Opening{Watcher: &forgetting{forgotten: forgotten}})
		must(t, err)
		abandoned = append(abandoned, tx)
		cancel()
	}
	goesDown(t, db, before+len(abandoned)) // what they had is given back
	must(t, abandoned[0].Rollback())
	must(t, pool.Close())
	goesDown(t, db, before)
	if len(forgotten) != 2 {
		t.Errorf("%d of 2 are forgotten", len(forgotten))
	}
	for _, tx := range abandoned[1:] {
		if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
			t.Error(err)
		}
	}
	tx, err := pool.Begin(t.Context(), &sqltx.Opening{}) // as before
	must(t, err)
	must(t, tx.Rollback())
	must(t, pool.Close())
}
