package sqltx_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/sqltx"
)

// endsUnseen is a ctx whose end nobody waits for, as when it ends just after the last row has come.
type endsUnseen struct {
	context.Context
	over atomic.Bool
}

func (c *endsUnseen) Done() <-chan struct{} { return nil }

func (c *endsUnseen) Err() error {
	if c.over.Load() {
		return context.Canceled
	}
	return nil
}

// What a text did to its transaction is what the server said then, and not the state of the transaction that others have on the connection since.
func TestLateText(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.MaxConns(1))
	ctx, cancel := context.WithCancel(t.Context())
	w := &ending{}
	tx, err := sqltx.New(db).Begin(ctx, &sqltx.Opening{Watcher: w})
	must(t, err)
	asking := &endsUnseen{Context: context.WithoutCancel(ctx)}
	rows, err := tx.QueryContext(asking, "SELECT generate_series(1, 3)")
	must(t, err)
	asking.over.Store(true)
	cancel()
	must(t, rows.Close()) //nolint:sqlclosecheck // now the connection goes back to the pool
	must(t, rows.Err())
	others, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	if _, err := others.ExecContext(t.Context(), "SELECT 1/0"); err == nil {
		t.Fatal("division by zero")
	}
	must(t, tx.Rollback())
	must(t, others.Rollback())
	want(t, w.heard, "failed", "\x00 to T", "ended, committed false")
}

// straying is a Watcher that says where others cannot have the rows yet when it hears that nothing is committed any more.
type straying struct {
	ending
	stray func(all bool)
}

func (s *straying) Stray(all bool) { s.stray(all) }

// The watcher hears that nothing can be committed any more before the server does, even while rows are open.
func TestStray_beforeTheRollback(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]bool{"no rows are open": false, "rows are open": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.SQLDB(t, pgtest.MaxConns(2))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			states := make(chan string, 1)
			w, pid := &straying{}, 0
			w.stray = func(all bool) {
				if !all {
					states <- "a part is astray"
				}
				state := ""
				if err := db.QueryRowContext(t.Context(), "SELECT state FROM pg_stat_activity WHERE pid = $1", pid).Scan(&state); err != nil {
					state = err.Error()
				}
				states <- state
			}
			tx, err := sqltx.New(db).Begin(ctx, &sqltx.Opening{Watcher: w})
			must(t, err)
			defer func() { _ = tx.Rollback() }()
			must(t, tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
			if open {
				rows, err := tx.QueryContext(t.Context(), "SELECT generate_series(1, 3)")
				must(t, err)
				defer func() { must(t, errors.Join(rows.Err(), rows.Close())) }()
			}
			cancel()
			if state := <-states; state != "idle in transaction" && (!open || state != "active") {
				t.Errorf("the transaction is %s", state)
			}
		})
	}
}

// endsByHand is a ctx that says later than it ends that it has ended.
type endsByHand struct {
	endsUnseen
	done chan struct{}
	tell func()
}

func (c *endsByHand) Done() <-chan struct{} { return c.done }

// AfterFunc is what [context.AfterFunc] calls.
func (c *endsByHand) AfterFunc(run func()) (stop func() bool) {
	c.tell = run
	return func() bool { return true }
}

// refusing is a Watcher that does something when a statement is refused.
type refusing struct {
	ending
	refused func()
}

func (r *refusing) Refused() { r.refused() }

// A statement that is refused because ctx has ended does not race with the end of the transaction. Only -race sees it.
func TestRefused_besideTheEnd(t *testing.T) {
	t.Parallel()
	ctx := &endsByHand{endsUnseen: endsUnseen{Context: context.WithoutCancel(t.Context())}, done: make(chan struct{})}
	w, told := &refusing{}, make(chan struct{})
	w.refused = func() {}
	opening := &sqltx.Opening{Watcher: w}
	tx, err := sqltx.New(pgtest.SQLDB(t)).Begin(ctx, opening)
	must(t, err)
	defer func() { _ = tx.Rollback() }()
	ctx.over.Store(true)
	opening.Follow()
	w.refused = func() { go func() { defer close(told); ctx.tell() }() }
	if _, err := tx.ExecContext(t.Context(), "SELECT 1"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-told
}
