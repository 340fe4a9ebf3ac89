package lookalikes_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/sessionlock"
)

// things guards the making of the table that a door writes to.
var things sync.Mutex

// What needs one transaction works behind PgBouncer in session and in transaction mode, on every door.
func TestPgBouncer_transactions(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"session", "transaction"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			works(t, pgtest.StartPgBouncer(t, pgtest.DSN(t), "pool_mode = "+mode, "default_pool_size = 10").DSN(), pgtest.DSN(t))
		})
	}
}

// works asserts that every door takes its lock through a pooler, is refused beside a rival who is connected past it, and
// leaves nothing behind.
func works(t *testing.T, pooled, direct string) {
	t.Helper()
	p, rival := at(t, pooled), pgtest.Conn(t, pgtest.Through(direct))
	things.Lock()
	_, err := rival.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS things (id int)")
	things.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := p.key.Int64()
	for _, d := range doors {
		if d.name == "advisory.SessionLocker" {
			continue // see TestEveryFeature
		}
		for range 4 { // a session may prepare what it takes again
			if err := d.take(t.Context(), p); err != nil {
				t.Errorf("%s: %v", d.name, err)
			}
		}
		var free bool
		if err := rival.QueryRow(t.Context(), "SELECT pg_try_advisory_lock($1)", id).Scan(&free); err != nil || !free {
			t.Fatalf("%s left its lock with a server connection: %v", d.name, err)
		}
		if err := d.take(t.Context(), p, advisory.Try()); !errors.Is(err, advisory.ErrNotAcquired) {
			t.Errorf("%s beside a holder: %v", d.name, err)
		}
		if _, err := rival.Exec(t.Context(), "SELECT pg_advisory_unlock($1)", id); err != nil {
			t.Fatal(err)
		}
	}
}

// Pgpool-II with one server, and with a standby beside it to which it sends no reads.
func TestPgpool_withoutLoadBalancing(t *testing.T) {
	t.Parallel()
	primary := pgtest.Fresh(t)
	standby := pgtest.Standby(t, primary)
	dsns := []string{primary.DSN("postgres"), standby.DSN("postgres")}
	pooled := pgtest.Pgpool(t, dsns, "load_balance_mode = off")
	works(t, pooled, dsns[0])
	if _, err := sessionlock.Open(t.Context(), pooled); !errors.Is(err, sessionlock.ErrPooler) {
		t.Errorf("sessionlock.Open: %v", err)
	}
}

// With load balancing a lock is taken at the primary, or refused because it was sent to the standby: never granted there.
func TestPgpool_loadBalancing(t *testing.T) {
	t.Parallel()
	primary := pgtest.Fresh(t)
	standby := pgtest.Standby(t, primary)
	dsns := []string{primary.DSN("postgres"), standby.DSN("postgres")}
	p := at(t, pgtest.Pgpool(t, dsns, "load_balance_mode = on", "statement_level_load_balance = on"))
	rival := pgtest.Conn(t, pgtest.Through(dsns[0]))
	if _, err := rival.Exec(t.Context(), "CREATE TABLE things (id int)"); err != nil {
		t.Fatal(err)
	}
	id, _ := p.key.Int64()
	if _, err := rival.Exec(t.Context(), "SELECT pg_advisory_lock($1)", id); err != nil {
		t.Fatal(err)
	}
	for _, d := range doors {
		if d.name == "advisory.SessionLocker" {
			continue
		}
		if err := d.take(t.Context(), p, advisory.Try()); !errors.Is(err, advisory.ErrNotAcquired) && !errors.Is(err, advisory.ErrStandby) {
			t.Errorf("%s beside a holder: %v", d.name, err)
		}
	}
}

// Statement mode has no transactions: everything is refused, nothing is held, and the pooler says why.
func TestPgBouncer_statementMode(t *testing.T) {
	t.Parallel()
	pooled := pgtest.StartPgBouncer(t, pgtest.DSN(t), "pool_mode = statement")
	p := at(t, pooled.DSN())
	for _, d := range doors {
		if d.name == "advisory.SessionLocker" {
			continue
		}
		if err := d.take(t.Context(), p); err == nil || !strings.Contains(err.Error(), "statement pooling mode") {
			t.Errorf("%s: %v", d.name, err)
		}
	}
	if err := p.db.Transaction(func(*gorm.DB) error { return nil }); err == nil {
		t.Error("control: a transaction")
	}
	if _, err := sessionlock.Open(t.Context(), pooled.DSN()); !errors.Is(err, sessionlock.ErrPooler) {
		t.Errorf("sessionlock.Open: %v", err)
	}
	pgtest.Observe(t, pgtest.DSN(t)).AssertFree(t, p.key)
}
