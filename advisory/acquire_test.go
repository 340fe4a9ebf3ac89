package advisory_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

func begin(t *testing.T, db *sql.DB, opts *sql.TxOptions) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// TestAcquire: a *sql.Tx of the driver is all it takes, with the extended and the simple protocol.
func TestAcquire(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]pgtest.Option{"extended": nil, "simple": {pgtest.SimpleProtocol()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			db := pgtest.SQLDB(t, opts...)
			keys := []lockkey.Key{pgtest.Key(t), pgtest.PairKey(t), pgtest.Key(t)}
			holder, other := begin(t, db, nil), begin(t, db, nil)
			if err := advisory.Acquire(ctx, holder, keys); err != nil {
				t.Fatal(err)
			}
			for _, key := range keys {
				if locks := pgtest.Locks(t, key); len(locks) != 1 || locks[0].Mode != "ExclusiveLock" {
					t.Errorf("%s: %+v", key, locks)
				}
				if err := advisory.Acquire(ctx, other, []lockkey.Key{key}, advisory.Try()); !errors.Is(err, advisory.ErrNotAcquired) {
					t.Errorf("Try: %v", err)
				}
				if err := advisory.Acquire(ctx, other, []lockkey.Key{key}, advisory.Timeout(time.Millisecond)); !errors.Is(err, advisory.ErrLockTimeout) {
					t.Errorf("Timeout: %v", err)
				}
			}
			if err := advisory.Acquire(ctx, other, keys, advisory.Try(), advisory.Shared()); !errors.Is(err, advisory.ErrNotAcquired) {
				t.Errorf("Try, Shared: %v", err)
			}
			done := make(chan error)
			go func() { done <- advisory.Acquire(ctx, other, keys, advisory.Timeout(time.Minute)) }()
			pgtest.WaitBlocked(t, slices.MinFunc(keys, lockkey.Compare), 1)
			if err := holder.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Errorf("after the holder: %v", err)
			}
			if err := other.Commit(); err != nil {
				t.Error(err)
			}
			for _, key := range keys {
				if pgtest.Held(t, key) {
					t.Errorf("%s is held after the commit", key)
				}
			}
			if err := advisory.Acquire(ctx, other, keys); !errors.Is(err, sql.ErrTxDone) {
				t.Errorf("a transaction that is over: %v", err)
			}
			for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
				snapshot := begin(t, db, &sql.TxOptions{Isolation: level})
				if err := advisory.Acquire(ctx, snapshot, keys); !errors.Is(err, advisory.ErrSnapshotTaken) {
					t.Errorf("%s: %v", level, err)
				}
				if err := advisory.Acquire(ctx, snapshot, keys[:1], advisory.Try()); !errors.Is(err, advisory.ErrSnapshotTaken) {
					t.Errorf("%s, Try: %v", level, err)
				}
				if err := advisory.Acquire(ctx, snapshot, keys, advisory.AllowSnapshot()); err != nil {
					t.Errorf("%s, AllowSnapshot: %v", level, err)
				}
				if err := snapshot.Commit(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestAcquire_KilledBackend: the error is the driver's, and the lock is not.
func TestAcquire_KilledBackend(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := pgtest.SQLDB(t)
	key := pgtest.Key(t)
	holder, waiter := begin(t, db, nil), begin(t, db, nil)
	if err := advisory.Acquire(ctx, holder, []lockkey.Key{key}); err != nil {
		t.Fatal(err)
	}
	var pid int
	if err := waiter.QueryRow("select pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- advisory.Acquire(ctx, waiter, []lockkey.Key{key}) }()
	pgtest.WaitBlocked(t, key, 1)
	pgtest.Kill(t, pid)
	if err := <-done; err == nil || errors.Is(err, advisory.ErrNotAcquired) || errors.Is(err, advisory.ErrLockTimeout) {
		t.Errorf("err = %v", err)
	}
}

// TestTx: what is no transaction does not compile where one is wanted; a lock there would be gone at once.
func TestTx(t *testing.T) {
	t.Parallel()
	for _, no := range []any{(*sql.DB)(nil), (*sql.Conn)(nil), (*sql.Stmt)(nil)} {
		if _, ok := no.(advisory.Tx); ok {
			t.Errorf("%T passes for a transaction", no)
		}
	}
	if _, ok := any((*sql.Tx)(nil)).(advisory.Tx); !ok {
		t.Error("a *sql.Tx does not")
	}
}
