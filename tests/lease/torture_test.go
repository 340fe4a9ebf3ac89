package lease_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
)

// fault is what happens to the workers and their server. It ends when the others have gone on.
type fault struct {
	name   string
	strike func(s *scene)
	pooled bool
	long   bool // work that only renewals keep the lease for
	skews  []string
}

var faults = []fault{
	{name: "killed process", strike: func(s *scene) { s.Kill(s.Holder()) }},
	{name: "process stopped past its lease", strike: stopPastTheLease},
	{name: "terminated backends", strike: func(s *scene) {
		s.Holder()
		s.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
	}},
	{name: "crashed server", strike: func(s *scene) { s.CrashUnderHolder(s.server) }},
	{name: "connection reset", strike: func(s *scene) { s.Holder().Proxy.ResetConnections() }},
	{name: "connection stalled past the lease", strike: func(s *scene) {
		p := s.Holder()
		p.Proxy.Stall()
		s.Progress(p)
		<-time.After(workerTTL)
		p.Proxy.Cut()
		p.Proxy.Resume()
	}},
	{name: "renewals cut while the work goes on", long: true, strike: func(s *scene) {
		p := s.Holder()
		p.Proxy.OnQuery(func(sql string) wiretap.Action {
			if isRenewal(sql) {
				return wiretap.HoldRequest
			}
			return wiretap.Pass
		})
		<-time.After(2 * workerTTL)
		p.Proxy.OnQuery(nil)
		p.Proxy.Resume()
	}},
	{name: "answers of renewals that come late", long: true, strike: func(s *scene) {
		p := s.Holder()
		p.Proxy.OnQuery(func(sql string) wiretap.Action {
			if isRenewal(sql) || isAcquire(sql) {
				return wiretap.HoldAnswer
			}
			return wiretap.Pass
		})
		<-time.After(workerTTL)
		p.Proxy.OnQuery(nil)
		p.Proxy.Resume()
	}},
	{name: "clocks off by hours", strike: stopPastTheLease, skews: []string{"5h", "-5h", "0s"}},
	{name: "restarted PgBouncer", pooled: true, strike: func(s *scene) {
		s.Holder()
		s.PgBouncer.Kill()
		s.PgBouncer.Start()
	}},
	{name: "failover to a synchronous standby", strike: (*scene).failover},
}

// stopPastTheLease stops a process until others hold what it held, then lets it go on.
func stopPastTheLease(s *scene) {
	p := s.Holder()
	p.Stop()
	s.Progress(p)
	<-time.After(workerTTL)
	p.Continue()
}

// At most one holder that believes, and no write accepted from one that was superseded,
// whatever happens to processes, connections, clocks and servers.
func TestTorture_histories(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			if f.pooled {
				s.PgBouncer = pgtest.StartPgBouncer(t, s.server.DSN("postgres"),
					"pool_mode = transaction", "max_client_conn = 200", "server_round_robin = 1", "default_pool_size = 4")
			}
			if f.skews != nil {
				s.skews = f.skews
			}
			s.long = f.long
			s.start(3)
			s.Endure(func() { f.strike(s) })
			s.Check(loss)
		})
	}
}

// The control: without the guard the stopped holder's write comes after its successors'.
func TestTorture_withoutFencingAStaleWriteGoesThrough(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Regresses(s.start, func() { stopPastTheLease(s) })
}

func isRenewal(sql string) bool {
	return strings.Contains(sql, "SKIP LOCKED") && !strings.HasPrefix(sql, "EXPLAIN")
}

func isAcquire(sql string) bool {
	return strings.HasPrefix(sql, "WITH taken")
}
