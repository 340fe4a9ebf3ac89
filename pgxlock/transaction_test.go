package pgxlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/pgxlock"
)

var errOwn = errors.New("the function's own")

func nothing(pgx.Tx) error { return nil }

// levels are the isolation levels, and whether the transaction keeps one snapshot.
var levels = map[pgx.TxIsoLevel]bool{"": false, pgx.ReadUncommitted: false, pgx.ReadCommitted: false, pgx.RepeatableRead: true, pgx.Serializable: true}

func at(level pgx.TxIsoLevel) []pgxlock.TxOption {
	if level == "" {
		return nil
	}
	return []pgxlock.TxOption{pgxlock.Isolation(level)}
}

// BEGIN and its locks are one round trip, the level is the one asked for, and the locks are held and freed.
func TestTransaction_beginsWithItsLocks(t *testing.T) {
	t.Parallel()
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			proxy, pool := tapped(t, 1, way)
			a, b, pair := pgtest.Key(t), pgtest.Key(t), pgtest.PairKey(t)
			for level := range levels {
				for what, opts := range map[string][]pgxlock.TxOption{
					"no lock":        nil,
					"one lock":       {pgxlock.Locking(a)},
					"several":        {pgxlock.Locking(a), pgxlock.Locking(b, advisory.Shared()), pgxlock.Locking(pair)},
					"with a timeout": {pgxlock.Locking(a, advisory.Timeout(time.Minute)), pgxlock.Locking(b)},
					"not waited":     {pgxlock.Locking(a, advisory.Try())},
					"several, tried": {pgxlock.Locking(a, advisory.Try()), pgxlock.Locking(pair, advisory.Try())},
					"one twice":      {pgxlock.Locking(a, advisory.Shared()), pgxlock.Locking(a)},
				} {
					run := func() error {
						proxy.Reset()
						return pgxlock.Transaction(ctx, pool, func(tx pgx.Tx) error {
							if got := proxy.RoundTrips(); got != 1 {
								t.Errorf("%q, %s: %d round trips: %q", level, what, got, proxy.Statements())
							}
							if opts != nil && !pgtest.Held(t, a) {
								t.Errorf("%q, %s: not held", level, what)
							}
							var isolation, timeout string
							if err := tx.QueryRow(ctx, "select current_setting('transaction_isolation'), current_setting('lock_timeout')").Scan(&isolation, &timeout); err != nil {
								return err
							}
							if level != "" && isolation != string(level) || timeout != "0" {
								t.Errorf("%q, %s: isolation %s, lock_timeout %s", level, what, isolation, timeout)
							}
							return nil
						}, append(at(level), opts...)...)
					}
					if err := errors.Join(run(), run()); err != nil {
						t.Errorf("%q, %s: %v", level, what, err)
					}
					for _, key := range []lockkey.Key{a, b, pair} {
						if pgtest.Held(t, key) {
							t.Errorf("%q, %s: held afterwards", level, what)
						}
					}
				}
			}
		})
	}
}

// What is refused does not run, and leaves the connection as it was: a pool keeps it, a caller's own stays open.
func TestTransaction_refused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := newPool(t, pgtest.DSN(t), 1)
	conn, taken, free := pgtest.Conn(t), pgtest.Key(t), pgtest.Key(t)
	rivalHolds(t, taken)
	lent, err := newPool(t, pgtest.DSN(t), 1).Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lent.Release)
	for what, db := range map[string]interface {
		pgxlock.Beginner
		QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	}{"pool": pool, "connection": conn, "connection of a pool": lent} {
		for level := range levels {
			before := pid(t, db)
			for want, opts := range map[error][]pgxlock.TxOption{
				advisory.ErrNotAcquired: {pgxlock.Locking(free, advisory.Try()), pgxlock.Locking(taken, advisory.Try())},
				advisory.ErrLockTimeout: {pgxlock.Locking(free), pgxlock.Locking(taken, advisory.Timeout(time.Millisecond))},
			} {
				ran := 0
				err := pgxlock.Transaction(ctx, db, func(pgx.Tx) error { ran++; return nil }, append(append(at(level), opts...), pgxlock.Attempts(5))...)
				if !errors.Is(err, want) || ran > 0 {
					t.Errorf("%s at %q: %v, want %v; ran %d times", what, level, err, want, ran)
				}
			}
			if pgtest.Held(t, free) {
				t.Errorf("%s at %q: half of it is held", what, level)
			}
			if after := pid(t, db); after != before {
				t.Errorf("%s at %q: connection %d became %d", what, level, before, after)
			}
			if err := pgxlock.Transaction(ctx, db, nothing, append(at(level), pgxlock.Locking(free))...); err != nil {
				t.Errorf("%s at %q afterwards: %v", what, level, err)
			}
		}
	}
}

// At a level that keeps one snapshot the transaction reads what the holder before it wrote, even if the level is the
// database's default.
func TestTransaction_isYoungerThanItsLock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dsn := pgtest.SchemaDSN(t)
	writer := pgtest.Conn(t, pgtest.Through(dsn))
	if _, err := writer.Exec(ctx, "create table n (n int); insert into n values (0)"); err != nil {
		t.Fatal(err)
	}
	byDefault := newPool(t, dsn, 1, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable" })
	want := 0
	for what, run := range map[string]func(fn func(pgx.Tx) error, key lockkey.Key) error{
		"asked for": func(fn func(pgx.Tx) error, key lockkey.Key) error {
			return pgxlock.Transaction(ctx, newPool(t, dsn, 1), fn, pgxlock.Locking(key), pgxlock.Isolation(pgx.RepeatableRead))
		},
		"default": func(fn func(pgx.Tx) error, key lockkey.Key) error {
			return pgxlock.Transaction(ctx, byDefault, fn, pgxlock.Locking(key))
		},
		"below the default": func(fn func(pgx.Tx) error, key lockkey.Key) error {
			return pgxlock.Transaction(ctx, byDefault, fn, pgxlock.Locking(key), pgxlock.Isolation(pgx.ReadCommitted))
		},
	} {
		key := pgtest.Key(t)
		free := rivalHolds(t, key)
		got, done := -1, make(chan error)
		go func() {
			done <- run(func(tx pgx.Tx) error { return tx.QueryRow(ctx, "select n from n").Scan(&got) }, key)
		}()
		pgtest.WaitBlocked(t, key, 1)
		want++
		if _, err := writer.Exec(ctx, "update n set n = $1", want); err != nil {
			t.Fatal(err)
		}
		free()
		if err := <-done; err != nil || got != want {
			t.Errorf("%s: read %d, want %d; %v", what, got, want, err)
		}
	}
	if err := byDefault.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return pgxlock.Acquire(ctx, tx, []lockkey.Key{pgtest.Key(t)}) })
	}); !errors.Is(err, advisory.ErrSnapshotTaken) {
		t.Errorf("control: %v", err)
	}
}

// Attempts repeats conflicts, and nothing else.
func TestTransaction_attempts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := newPool(t, pgtest.DSN(t), 2)
	conflict := func(state string) error { return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: state}) }
	for _, c := range []struct {
		err       error
		runs, max int
	}{
		{conflict("40001"), 3, 3}, {conflict("40P01"), 3, 3}, {conflict("55P03"), 1, 3}, {conflict("23505"), 1, 3}, {errOwn, 1, 3},
		{advisory.ErrNotAcquired, 1, 3}, {advisory.ErrLockTimeout, 1, 3}, {conflict("40001"), 1, 0}, {conflict("40001"), 1, 1},
	} {
		opts := []pgxlock.TxOption{pgxlock.Locking(pgtest.Key(t))}
		if c.max > 0 {
			opts = append(opts, pgxlock.Attempts(c.max))
		}
		runs := 0
		err := pgxlock.Transaction(ctx, pool, func(pgx.Tx) error { runs++; return c.err }, opts...)
		if !errors.Is(err, c.err) || runs != c.runs {
			t.Errorf("%v, at most %d: %d runs, %v", c.err, c.max, runs, err)
		}
		if c.runs > 1 && !strings.Contains(err.Error(), "gave up after 3 attempts") {
			t.Error(err)
		}
	}
	runs := 0
	if err := pgxlock.Transaction(ctx, pool, func(pgx.Tx) error {
		if runs++; runs < 3 {
			return conflict("40001")
		}
		return nil
	}, pgxlock.Attempts(3)); err != nil || runs != 3 {
		t.Errorf("cured: %d runs, %v", runs, err)
	}
	// Of the COMMIT too: two transactions that read what the other wrote.
	dsn := pgtest.SchemaDSN(t)
	pool = newPool(t, dsn, 3)
	if _, err := pool.Exec(ctx, "create table s (n int)"); err != nil {
		t.Fatal(err)
	}
	var total atomic.Int32
	both, done := make(chan struct{}, 2), make(chan error)
	for range 2 {
		go func() {
			first := true
			done <- pgxlock.Transaction(ctx, pool, func(tx pgx.Tx) error {
				total.Add(1)
				if _, err := tx.Exec(ctx, "insert into s select count(*) from s"); err != nil {
					return err
				}
				if first {
					first = false
					both <- struct{}{}
					for len(both) < 2 {
						runtime.Gosched()
					}
				}
				return nil
			}, pgxlock.Isolation(pgx.Serializable), pgxlock.Attempts(20))
		}()
	}
	if err := errors.Join(<-done, <-done); err != nil || total.Load() < 3 {
		t.Errorf("%d runs, %v", total.Load(), err)
	}
}

// Whatever fn does, the transaction is over afterwards and its connection is free.
func TestTransaction_ends(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := newPool(t, pgtest.SchemaDSN(t), 1)
	if _, err := pool.Exec(ctx, "create table kept (n int)"); err != nil {
		t.Fatal(err)
	}
	insert := func(tx pgx.Tx) {
		if _, err := tx.Exec(ctx, "insert into kept values (1)"); err != nil {
			t.Error(err)
		}
	}
	ended, cancel := context.WithCancelCause(ctx)
	for what, c := range map[string]struct {
		ctx  context.Context
		fn   func(tx pgx.Tx) error
		want error
		kept int
	}{
		"success":       {ctx, func(tx pgx.Tx) error { insert(tx); return nil }, nil, 1},
		"error":         {ctx, func(tx pgx.Tx) error { insert(tx); return errOwn }, errOwn, 0},
		"its own end":   {ctx, func(tx pgx.Tx) error { insert(tx); return tx.Commit(ctx) }, pgx.ErrTxClosed, 1},
		"ctx that ends": {ended, func(tx pgx.Tx) error { insert(tx); cancel(errOwn); return ended.Err() }, errOwn, 0},
		"an aborted transaction": {ctx, func(tx pgx.Tx) error {
			insert(tx)
			_, _ = tx.Exec(ctx, "select 1/0")
			return nil
		}, pgx.ErrTxCommitRollback, 0},
	} {
		key := pgtest.Key(t)
		if err := pgxlock.Transaction(c.ctx, pool, c.fn, pgxlock.Locking(key), pgxlock.Attempts(3)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		kept := -1
		if err := pool.QueryRow(ctx, "with gone as (delete from kept returning 1) select count(*) from gone").Scan(&kept); err != nil || kept != c.kept {
			t.Errorf("%s: %d rows kept, want %d; %v", what, kept, c.kept, err)
		}
		if pgtest.Held(t, key) {
			t.Errorf("%s: held", what)
		}
	}
	key := pgtest.Key(t)
	func() {
		defer func() {
			if recover() != any(errOwn) {
				t.Error("the panic was swallowed")
			}
		}()
		_ = pgxlock.Transaction(ctx, pool, func(pgx.Tx) error { panic(errOwn) }, pgxlock.Locking(key), pgxlock.Attempts(3))
	}()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = pgxlock.Transaction(ctx, pool, func(pgx.Tx) error { runtime.Goexit(); return nil }, pgxlock.Locking(key))
	}()
	<-gone
	if pgtest.Held(t, key) || pool.Stat().AcquiredConns() != 0 {
		t.Error("a panic or the end of the goroutine keeps the transaction")
	}
}

// A pool that has no connection left is waited for as long as ctx lets it.
func TestTransaction_exhaustedPool(t *testing.T) {
	t.Parallel()
	pool := newPool(t, pgtest.DSN(t), 1)
	tx := begin(t, pool)
	key := pgtest.Key(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	for _, opts := range [][]pgxlock.TxOption{nil, {pgxlock.Locking(key)}, {pgxlock.Attempts(3)}} {
		if err := pgxlock.Transaction(ctx, pool, nothing, opts...); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	if err := tx.Rollback(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := pgxlock.Transaction(context.Background(), pool, nothing, pgxlock.Locking(key)); err != nil {
		t.Error(err)
	}
}

// A ctx that ends during the wait takes the connection with it, and the lock is not held.
func TestTransaction_contextEndsDuringTheWait(t *testing.T) {
	t.Parallel()
	for level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			conn := pgtest.Conn(t)
			for _, db := range []pgxlock.Beginner{newPool(t, pgtest.DSN(t), 1), conn} {
				key := pgtest.Key(t)
				free := rivalHolds(t, key)
				ctx, cancel := context.WithCancelCause(context.Background())
				done := make(chan error)
				go func() { done <- pgxlock.Transaction(ctx, db, nothing, append(at(level), pgxlock.Locking(key))...) }()
				pgtest.WaitBlocked(t, key, 1)
				cancel(errOwn)
				if err := <-done; !errors.Is(err, context.Canceled) || !errors.Is(err, errOwn) {
					t.Error(err)
				}
				free()
				if err := pgxlock.Transaction(context.Background(), newPool(t, pgtest.DSN(t), 1), nothing, pgxlock.Locking(key, advisory.Timeout(time.Minute))); err != nil {
					t.Error(err)
				}
			}
			if !conn.IsClosed() {
				t.Error("the connection is open, and nobody knows what it holds")
			}
		})
	}
}

// In a transaction it is a savepoint.
func TestTransaction_nested(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := newPool(t, pgtest.DSN(t), 1)
	outside, inside := pgtest.Key(t), pgtest.Key(t)
	err := pgxlock.Transaction(ctx, pool, func(outer pgx.Tx) error {
		runs := 0
		err := pgxlock.Transaction(ctx, outer, func(inner pgx.Tx) error {
			runs++
			if !pgtest.Held(t, inside) {
				t.Error("not held")
			}
			return pgxlock.Transaction(ctx, inner, func(pgx.Tx) error { return &pgconn.PgError{Code: "40001"} }, pgxlock.Attempts(3))
		}, pgxlock.Locking(inside, advisory.Timeout(time.Second)), pgxlock.Attempts(3))
		if err == nil || runs != 1 {
			t.Errorf("%d runs, %v", runs, err)
		}
		if pgtest.Held(t, inside) || !pgtest.Held(t, outside) {
			t.Error("the savepoint's lock is held, or the transaction's is not")
		}
		if err := pgxlock.Transaction(ctx, outer, nothing, pgxlock.Isolation(pgx.Serializable)); !errors.Is(err, advisory.ErrOption) {
			t.Errorf("Isolation: %v", err)
		}
		if err := pgxlock.Transaction(ctx, outer.Conn(), nothing); !errors.Is(err, advisory.ErrOption) {
			t.Errorf("the connection of a transaction: %v", err)
		}
		return pgxlock.Transaction(ctx, outer, nothing, pgxlock.Locking(inside))
	}, pgxlock.Locking(outside))
	if err != nil {
		t.Error(err)
	}
}

// onlyBegins is a pool as a wrapper may leave it.
type onlyBegins struct{ pool *pgxpool.Pool }

func (o onlyBegins) Begin(ctx context.Context) (pgx.Tx, error) { return o.pool.Begin(ctx) }

func TestTransaction_badInput(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := newPool(t, pgtest.DSN(t), 1)
	key := pgtest.Key(t)
	ran := func(pgx.Tx) error { t.Error("ran"); return nil }
	for what, err := range map[string]error{
		"no beginner":      pgxlock.Transaction(ctx, nil, ran),
		"no function":      pgxlock.Transaction(ctx, pool, nil),
		"nil option":       pgxlock.Transaction(ctx, pool, ran, nil),
		"no attempts":      pgxlock.Transaction(ctx, pool, ran, pgxlock.Attempts(0)),
		"no such level":    pgxlock.Transaction(ctx, pool, ran, pgxlock.Isolation("read committed; drop table t")),
		"the empty level":  pgxlock.Transaction(ctx, pool, ran, pgxlock.Isolation("")),
		"options at odds":  pgxlock.Transaction(ctx, pool, ran, pgxlock.Locking(key, advisory.Try(), advisory.Timeout(time.Second))),
		"nil lock option":  pgxlock.Transaction(ctx, pool, ran, pgxlock.Locking(key, nil)),
		"without BeginTx":  pgxlock.Transaction(ctx, onlyBegins{pool}, ran, pgxlock.Locking(key)),
		"no time to wait":  pgxlock.Transaction(ctx, pool, ran, pgxlock.Locking(key, advisory.Timeout(0))),
		"negative attempt": pgxlock.Transaction(ctx, pool, ran, pgxlock.Attempts(-1)),
	} {
		if !errors.Is(err, advisory.ErrOption) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := pgxlock.Transaction(ctx, pool, ran, pgxlock.Locking(lockkey.Key{})); !errors.Is(err, lockkey.ErrInvalid) {
		t.Errorf("no key: %v", err)
	}
}
