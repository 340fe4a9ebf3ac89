package pgxlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/pgxlock"
)

// TestAcquire takes any number of locks in one round trip, and answers what advisory.Acquire answers.
func TestAcquire(t *testing.T) {
	t.Parallel()
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			proxy, pool := tapped(t, 2, way)
			keys := []lockkey.Key{pgtest.Key(t), pgtest.PairKey(t), pgtest.Key(t)}
			holder, other := begin(t, pool), begin(t, pool)
			trips := func(want int, run func() error) error {
				t.Helper()
				proxy.Reset()
				err := run()
				if got := proxy.RoundTrips(); got != want {
					t.Errorf("%d round trips, want %d: %q", got, want, proxy.Statements())
				}
				return err
			}
			if err := trips(1, func() error { return pgxlock.Acquire(ctx, holder, keys) }); err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				if locks := pgtest.Locks(t, key); len(locks) != 1 || locks[0].Mode != "ExclusiveLock" {
					t.Errorf("%s: %+v", key, locks)
				}
				one := []lockkey.Key{key}
				if err := trips(1, func() error { return pgxlock.Acquire(ctx, other, one, advisory.Try()) }); !errors.Is(err, advisory.ErrNotAcquired) {
					t.Errorf("Try: %v", err)
				}
				if err := trips(2, func() error { return pgxlock.Acquire(ctx, other, one, advisory.Timeout(time.Millisecond)) }); !errors.Is(err, advisory.ErrLockTimeout) {
					t.Errorf("Timeout: %v", err)
				}
			}
			if err := pgxlock.Acquire(ctx, other, keys, advisory.Try(), advisory.Shared()); !errors.Is(err, advisory.ErrNotAcquired) {
				t.Errorf("Try, Shared: %v", err)
			}
			done := make(chan error)
			go func() { done <- pgxlock.Acquire(ctx, other, keys, advisory.Timeout(time.Minute)) }()
			pgtest.WaitBlocked(t, slices.MinFunc(keys, lockkey.Compare), 1)
			if err := holder.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Errorf("after the holder: %v", err)
			}
			if err := other.Commit(ctx); err != nil {
				t.Error(err)
			}
			for _, key := range keys {
				if pgtest.Held(t, key) {
					t.Errorf("%s is held after the commit", key)
				}
			}
		})
	}
}

// A transaction that is over, and one that there never was, hold nothing and say so.
func TestAcquire_whereNoTransactionIs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	conn, key := pgtest.Conn(t), pgtest.Key(t)
	over := begin(t, conn)
	inner, err := over.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := inner.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for _, opts := range [][]advisory.Option{nil, {advisory.Try()}, {advisory.Timeout(time.Second)}} {
		if err := pgxlock.Acquire(ctx, inner, []lockkey.Key{key}, opts...); !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("a nested transaction that is over: %v", err)
		}
	}
	if err := over.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for _, tx := range []pgx.Tx{over, inner} {
		if err := pgxlock.Acquire(ctx, tx, []lockkey.Key{key}); !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("a transaction that is over: %v", err)
		}
	}
	if err := pgxlock.Acquire(ctx, nil, []lockkey.Key{key}); !errors.Is(err, advisory.ErrOption) {
		t.Errorf("nil: %v", err)
	}
	if err := pgxlock.Acquire(ctx, over, nil); !errors.Is(err, lockkey.ErrInvalid) {
		t.Errorf("no keys: %v", err)
	}
	if pgtest.Held(t, key) {
		t.Error("held")
	}
}

// A nested transaction that is rolled back frees what it took, and nothing else.
func TestAcquire_underASavepoint(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	outer := begin(t, pgtest.Conn(t))
	before, within, taken := pgtest.Key(t), pgtest.Key(t), pgtest.Key(t)
	rivalHolds(t, taken)
	if err := pgxlock.Acquire(ctx, outer, []lockkey.Key{before}); err != nil {
		t.Fatal(err)
	}
	inner, err := outer.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := pgxlock.Acquire(ctx, inner, []lockkey.Key{before, within}); err != nil {
		t.Fatal(err)
	}
	for _, opt := range []advisory.Option{advisory.Try(), advisory.Timeout(time.Millisecond)} {
		if err := pgxlock.Acquire(ctx, inner, []lockkey.Key{taken}, opt); err == nil {
			t.Error("two hold it")
		}
	}
	if !pgtest.Held(t, within) {
		t.Error("a refusal has freed what was held")
	}
	if err := inner.Rollback(ctx); err != nil {
		t.Error(err)
	}
	if pgtest.Held(t, within) || !pgtest.Held(t, before) {
		t.Error("the savepoint's lock is held, or the transaction's is not")
	}
	if err := outer.Commit(ctx); err != nil {
		t.Error(err)
	}
}

// Rows that are still read keep the connection busy: no lock is taken, and the transaction goes on.
func TestAcquire_whileRowsAreRead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	key := pgtest.Key(t)
	tx := begin(t, pgtest.Conn(t))
	rows, err := tx.Query(ctx, "select generate_series(1, 10)")
	if err != nil {
		t.Fatal(err)
	}
	if err := pgxlock.Acquire(ctx, tx, []lockkey.Key{key}); err == nil || pgtest.Held(t, key) {
		t.Errorf("err = %v", err)
	}
	rows.Close()
	if err := errors.Join(rows.Err(), pgxlock.Acquire(ctx, tx, []lockkey.Key{key})); err != nil || !pgtest.Held(t, key) {
		t.Errorf("afterwards: %v", err)
	}
}
