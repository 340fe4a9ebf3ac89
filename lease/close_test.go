package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// closing calls Close in the background.
func closing(ctx context.Context, m *lease.Manager) <-chan error {
	over := make(chan error, 1)
	go func() { over <- m.Close(ctx) }()
	return over
}

// A second Close returns only when the first one has released everything: whoever learns that the manager is closed may take what it held.
func TestClose_theSecondWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	m, rival := rivals(t)
	db := tables(t)
	k := lockkey.Of("k")
	acquire(t, m, k, time.Minute)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "SELECT 1 FROM gormlock_lease FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	first := closing(t.Context(), m)
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	late := map[string]<-chan error{}
	for deadline := time.Now().Add(bound); len(late) < 3 && time.Now().Before(deadline); { // waiting for the first
		if _, err := m.TryAcquire(t.Context(), lockkey.Of("other"), time.Minute); !errors.Is(err, lease.ErrClosed) {
			continue
		}
		late["second"], late["third"], late["short"] = closing(t.Context(), m), closing(context.Background(), m), closing(short, m)
	}
	if err := <-late["short"]; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a Close whose ctx ends first: %v", err)
	}
	select {
	case err := <-first:
		t.Errorf("the first: %v", err)
	case err := <-late["second"]:
		t.Errorf("the second: %v", err)
	case err := <-late["third"]:
		t.Errorf("the third: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"second", "third"} {
		if err := <-late[name]; err != nil {
			t.Errorf("the %s: %v", name, err)
		}
		if _, err := rival.TryAcquire(t.Context(), k, time.Minute); name == "second" && err != nil {
			t.Errorf("behind the %s it is held: %v", name, err)
		}
	}
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
}

// If the server is silent, a Close without a bound ends, and so does a second one.
func TestClose_onASilentNetwork(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	proxy, through := pgtest.Tap(t, dsn)
	tables(t, pgtest.Through(dsn))
	m, err := lease.New(t.Context(), pgtest.SQLDB(t, pgtest.Through(through), pgtest.MaxConns(4)))
	if err != nil {
		t.Fatal(err)
	}
	acquire(t, m, lockkey.Of("a"), time.Minute)
	acquire(t, m, lockkey.Of("b"), time.Minute)
	proxy.Stall()
	over := []<-chan error{closing(context.Background(), m), closing(context.Background(), m)}
	told := ""
	for _, each := range over {
		select {
		case err := <-each:
			if err != nil {
				told += err.Error() + "\n"
			}
		case <-time.After(2 * bound):
			t.Fatal("a Close does not end")
		}
	}
	if !strings.Contains(told, "2 leases were not released") || !strings.Contains(told, "no answer from the database within") {
		t.Errorf("they say %q", told)
	}
	proxy.Cut()
	proxy.Resume()
}
