package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

var _ lease.Listener = (*sessionlock.Manager)(nil)

// L16: a manager of session locks provides LISTEN.
func listener(t testing.TB) *sessionlock.Manager {
	t.Helper()
	m, err := sessionlock.Open(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

// waitWanted waits until somebody waits to be notified.
func waitWanted(t testing.TB, db *sql.DB, k lockkey.Key) {
	t.Helper()
	id, _ := k.Int64()
	for deadline := time.Now().Add(bound); ; {
		var wanted bool
		if err := db.QueryRowContext(t.Context(), "SELECT wanted FROM gormlock_lease WHERE id = $1", id).Scan(&wanted); err != nil {
			t.Fatal(err)
		}
		if wanted {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody wants to be notified")
		}
	}
}

func TestListen_wakesAtTheRelease(t *testing.T) {
	t.Parallel()
	db := tables(t)
	ear := listener(t)
	holder, waiter := open(t, db), open(t, db, lease.Listen(ear))
	k := pgtest.Key(t)
	for range 3 {
		l := acquire(t, holder, k, 10*time.Minute)
		began := time.Now()
		got := acquiring(t, waiter, k, time.Minute)
		waitWanted(t, db, k)
		if slow := time.Since(began); slow > time.Second {
			t.Logf("the machine is slow: %s", slow)
		}
		released := time.Now()
		release(t, l)
		next := <-got
		if took, waited := time.Since(released), time.Since(began); took > time.Second && waited > 2*time.Second {
			t.Errorf("woken %s after the release", took) // a waiter that is not woken asks again after 2 s
		}
		release(t, next)
	}
}

// P28, L16: a notification takes a lock that all commits share, so it is sent only if somebody waits for it.
func TestListen_notifiesOnlyWhoWantsIt(t *testing.T) {
	t.Parallel()
	db := tables(t)
	conn := pgtest.Conn(t)
	if _, err := conn.Exec(t.Context(), "LISTEN gormlock_lease"); err != nil {
		t.Fatal(err)
	}
	plain, listening := open(t, db), open(t, db, lease.Listen(listener(t)))
	silent, noisy := pgtest.Key(t), pgtest.Key(t)

	l := acquire(t, plain, silent, time.Minute)
	if _, err := listening.TryAcquire(t.Context(), silent, time.Minute); !errors.Is(err, lease.ErrNotAcquired) {
		t.Fatal(err) // a caller that does not wait wants no notification
	}
	if _, err := plain.Acquire(t.Context(), silent, time.Minute, lease.Timeout(50*time.Millisecond)); !errors.Is(err, lease.ErrLockTimeout) {
		t.Fatal(err) // a manager that cannot listen wants no notification
	}
	release(t, l)

	l = acquire(t, plain, noisy, time.Minute)
	if _, err := listening.Acquire(t.Context(), noisy, time.Minute, lease.Timeout(300*time.Millisecond)); !errors.Is(err, lease.ErrLockTimeout) {
		t.Fatal(err)
	}
	waitWanted(t, db, noisy)
	release(t, l)
	release(t, acquire(t, plain, noisy, time.Minute)) // this clears the wish

	var heard []string
	if _, err := conn.Exec(t.Context(), "NOTIFY gormlock_lease, 'end'"); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{payload(silent): "silent", payload(noisy): "noisy", "end": "end"}
	for len(heard) == 0 || heard[len(heard)-1] != "end" {
		n, err := conn.WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if who := ids[n.Payload]; who != "" {
			heard = append(heard, who)
		}
	}
	if fmt.Sprint(heard) != "[noisy end]" {
		t.Errorf("heard %v", heard)
	}
}

func payload(k lockkey.Key) string {
	id, _ := k.Int64()
	return fmt.Sprint("1:", id)
}

// If the listener is gone, waiters only get the lease later.
func TestListen_worksWithoutItsSession(t *testing.T) {
	t.Parallel()
	db := tables(t)
	ear := listener(t)
	if err := ear.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	holder, waiter := open(t, db), open(t, db, lease.Listen(ear))
	k := pgtest.Key(t)
	l := acquire(t, holder, k, time.Minute)
	got := acquiring(t, waiter, k, time.Minute)
	waitWanted(t, db, k)
	release(t, l)
	release(t, <-got)
}

// If the guard of fencing delays a later token, it delays the lease too.
func TestAcquire_waitsForAGuardedTransaction(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	db := tables(t, pgtest.Through(dsn))
	a, b := open(t, db), open(t, db)
	k := lockkey.Of("report")
	l := acquire(t, a, k, time.Minute)
	tx, err := pgtest.Conn(t, pgtest.Through(dsn)).BeginTx(t.Context(), pgx.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var latest int64
	if err := tx.QueryRow(t.Context(), "SELECT token FROM gormlock_fence WHERE id = $1 FOR SHARE", l.Token().ID).Scan(&latest); err != nil || latest != l.Token().Number {
		t.Fatalf("%d, %v", latest, err)
	}
	release(t, l)
	got := acquiring(t, b, k, time.Minute)
	select {
	case <-got:
		t.Error("granted while a transaction of the holder before is open")
	case <-time.After(200 * time.Millisecond):
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	release(t, <-got)
}
