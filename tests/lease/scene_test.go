package lease_test

import (
	"net/url"
	"testing"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/tests/internal/torture"
)

// scene is a server and the workers that fight for its leases.
type scene struct {
	*torture.Scene
	server  *pgserver.Server
	address *address // that leads to the server, or to its successor
	long    bool     // the work of each worker
	skews   []string // of the workers' clocks, in turn
	kind    string   // of their work
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{server: pgtest.Fresh(t), skews: []string{"0s"}}
	s.address = newAddress(t, s.server)
	dsn, err := url.Parse(s.server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	dsn.Host = s.address.String()
	s.Scene = torture.NewScene(t, dsn.String())
	if err := lease.Migrate(t.Context(), pgtest.SQLDB(t, pgtest.Through(s.DSN))); err != nil {
		t.Fatal(err)
	}
	return s
}

// start runs workers until the end of the test.
func (s *scene) start(n int) {
	s.T.Helper()
	for i := range n {
		env := []string{workerSkew + "=" + s.skews[i%len(s.skews)], workerKind + "=" + s.kind}
		if s.long {
			env = append(env, workerLong+"=1")
		}
		s.Start(env...)
	}
}

// failover makes a synchronous standby, kills the primary and promotes the standby.
func (s *scene) failover() {
	s.T.Helper()
	standby := pgtest.Standby(s.T, s.server)
	s.Exec("ALTER SYSTEM SET synchronous_standby_names = '*'")
	s.Exec("SELECT pg_reload_conf()")
	conn := pgtest.Conn(s.T, pgtest.Through(s.DSN))
	for synchronous := false; !synchronous; {
		const look = "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum') AND flush_lsn >= pg_current_wal_flush_lsn())"
		if err := conn.QueryRow(s.T.Context(), look).Scan(&synchronous); err != nil {
			s.T.Fatal(err)
		}
	}
	s.Holder()
	if err := s.server.Crash(); err != nil {
		s.T.Error(err)
	}
	if err := standby.Promote(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
	_ = s.server.Stop()
	s.server = standby
	s.address.lead(standby)
}
