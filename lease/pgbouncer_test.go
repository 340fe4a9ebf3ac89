package lease_test

import (
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// startPgBouncer starts PgBouncer in transaction mode.
func startPgBouncer(t testing.TB, server *pgserver.Server, lines ...string) *pgtest.PgBouncer {
	t.Helper()
	mode := []string{"pool_mode = transaction", "max_client_conn = 200", "server_round_robin = 1"}
	return pgtest.StartPgBouncer(t, server.DSN("postgres"), append(mode, lines...)...)
}

// P17: leases need no session, so a pooler in transaction mode may change it between any
// two statements. A driver that keeps prepared statements must be told not to.
func TestPgBouncer_transactionMode(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t, pgserver.Setting("synchronous_commit", "off"))
	b := startPgBouncer(t, server, "default_pool_size = 3")
	direct := pgtest.SQLDB(t, pgtest.Through(server.DSN("postgres")))
	if err := lease.Migrate(t.Context(), direct); err != nil {
		t.Fatal(err)
	}
	rival := open(t, direct)
	for _, mode := range []string{"simple_protocol", "exec"} {
		t.Run(mode, func(t *testing.T) {
			db := pgtest.SQLDB(t, pgtest.Through(b.DSN()), pgtest.Param("default_query_exec_mode", mode))
			if err := lease.Migrate(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			m := open(t, db)
			var wg sync.WaitGroup
			for i := range 10 {
				wg.Go(func() {
					k := lockkey.Of("report", i)
					l, err := m.Acquire(t.Context(), k, 3*time.Second)
					if err != nil {
						t.Error(err)
						return
					}
					for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
						if _, err := rival.TryAcquire(t.Context(), k, time.Second); !errors.Is(err, lease.ErrNotAcquired) {
							t.Errorf("the rival: %v", err)
						}
						<-time.After(50 * time.Millisecond)
					}
					release(t, l)
				})
			}
			wg.Wait()
			assertNothingSet(t, db)
		})
	}
}

// assertNothingSet checks that no setting of a lease statement stays on a server connection that other clients get: synchronous_commit is only
// raised for one transaction.
func assertNothingSet(t testing.TB, db *sql.DB) {
	t.Helper()
	for range 12 {
		var setting string
		if err := db.QueryRowContext(t.Context(), "SHOW synchronous_commit").Scan(&setting); err != nil || setting != "off" {
			t.Errorf("another client has synchronous_commit %s, %v", setting, err)
		}
	}
}

// If a pooler restarts, no lease is lost.
func TestPgBouncer_restart(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	b := startPgBouncer(t, server)
	db := pgtest.SQLDB(t, pgtest.Through(b.DSN()), pgtest.SimpleProtocol())
	if err := lease.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	m := open(t, db)
	l := acquire(t, m, lockkey.Of("report"), 5*time.Second)
	for range 3 {
		b.Kill()
		b.Start()
		<-time.After(time.Second)
	}
	if err := l.Err(); err != nil {
		t.Error(err)
	}
	release(t, l)
}

// With prepared statements behind such a pooler the error names the cure.
func TestPgBouncer_preparedStatements(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	b := startPgBouncer(t, server, "default_pool_size = 2")
	if err := lease.Migrate(t.Context(), pgtest.SQLDB(t, pgtest.Through(server.DSN("postgres")))); err != nil {
		t.Fatal(err)
	}
	db := pgtest.SQLDB(t, pgtest.Through(b.DSN()), pgtest.Param("default_query_exec_mode", "cache_statement"))
	var err error
	for i := 0; err == nil && i < 200; i++ {
		var wg sync.WaitGroup
		failed := make(chan error, 4)
		for range 4 {
			wg.Go(func() {
				m, err := lease.New(t.Context(), db)
				if err != nil {
					failed <- err
					return
				}
				if err := m.Close(t.Context()); err != nil {
					failed <- err
				}
			})
		}
		wg.Wait()
		select {
		case err = <-failed:
		default:
		}
	}
	if err == nil {
		t.Skip("this PgBouncer keeps track of prepared statements (1.21 and newer)")
	}
	if !strings.Contains(err.Error(), "default_query_exec_mode=exec") {
		t.Errorf("%v", err)
	}
}
