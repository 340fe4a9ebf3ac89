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

// A transaction that its ctx ends, and nobody else, leaves no goroutine behind, and its watcher forgets it.
func TestAbandoned(t *testing.T) { //nolint:paralleltest // it counts goroutines
	db := pgtest.SQLDB(t, pgtest.MaxConns(4))
	pool := sqltx.New(db)
	pool.WaitFor(50 * time.Millisecond)
	waiting := func() int {
		stacks := make([]byte, 1<<20)
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "awaitDone(")
	}
	before := waiting()
	forgotten := make(chan bool, 10)
	var last *sql.Tx
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		tx, err := pool.Begin(ctx, &sqltx.Opening{Watcher: &forgetting{forgotten: forgotten}})
		must(t, err)
		_, err = tx.ExecContext(t.Context(), "SELECT 1")
		must(t, err)
		cancel()
		last = tx
	}
	look, late := time.NewTicker(20*time.Millisecond), time.After(20*time.Second)
	defer look.Stop()
	for waiting() > before {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("%d goroutines wait for abandoned transactions", waiting()-before)
		}
	}
	for range 10 {
		<-forgotten
	}
	if err := last.Commit(); !errors.Is(err, sql.ErrTxDone) {
		t.Error(err)
	}
	must(t, pool.Close())
}
