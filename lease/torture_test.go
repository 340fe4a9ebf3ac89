package lease_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
)

func rounds(short, long int) int {
	if os.Getenv("GORMLOCK_TORTURE") != "" {
		return long
	}
	return short
}

// fault is what happens to the workers and their server. It ends when the others have gone on.
type fault struct {
	name   string
	strike func(s *scene)
	pooled bool
	long   bool // work that only renewals keep the lease for
	skews  []string
}

var faults = []fault{
	{name: "killed process", strike: func(s *scene) { s.kill(s.holder()) }},
	{name: "process stopped past its lease", strike: stopPastTheLease},
	{name: "terminated backends", strike: func(s *scene) {
		s.holder()
		conn := pgtest.Conn(s.t, pgtest.Through(s.server.DSN("postgres")))
		if _, err := conn.Exec(s.t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"); err != nil {
			s.t.Error(err)
		}
	}},
	{name: "crashed server", strike: func(s *scene) {
		s.holder()
		if err := s.server.Crash(); err != nil {
			s.t.Error(err)
		}
		if err := s.server.Restart(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}},
	{name: "connection reset", strike: func(s *scene) { s.holder().proxy.ResetConnections() }},
	{name: "connection stalled past the lease", strike: func(s *scene) {
		p := s.holder()
		p.proxy.Stall()
		s.progress(p)
		<-time.After(workerTTL)
		p.proxy.Cut()
		p.proxy.Resume()
	}},
	{name: "renewals cut while the work goes on", long: true, strike: func(s *scene) {
		p := s.holder()
		p.proxy.OnQuery(func(sql string) wiretap.Action {
			if isRenewal(sql) {
				return wiretap.HoldRequest
			}
			return wiretap.Pass
		})
		<-time.After(2 * workerTTL)
		p.proxy.OnQuery(nil)
		p.proxy.Resume()
	}},
	{name: "answers of renewals that come late", long: true, strike: func(s *scene) {
		p := s.holder()
		p.proxy.OnQuery(func(sql string) wiretap.Action {
			if isRenewal(sql) || isAcquire(sql) {
				return wiretap.HoldAnswer
			}
			return wiretap.Pass
		})
		<-time.After(workerTTL)
		p.proxy.OnQuery(nil)
		p.proxy.Resume()
	}},
	{name: "clocks off by hours", strike: stopPastTheLease, skews: []string{"5h", "-5h", "0s"}},
	{name: "restarted PgBouncer", pooled: true, strike: func(s *scene) {
		s.holder()
		s.pgbouncer.Kill()
		s.pgbouncer.Start()
	}},
	{name: "failover to a synchronous standby", strike: (*scene).failover},
}

// stopPastTheLease stops a process until others hold what it held, then lets it go on.
func stopPastTheLease(s *scene) {
	p := s.holder()
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	s.progress(p)
	<-time.After(workerTTL)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
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
				s.pgbouncer = startPgBouncer(t, s.server, "default_pool_size = 4")
			}
			if f.skews != nil {
				s.skews = f.skews
			}
			s.long = f.long
			s.start(3)
			for range rounds(1, 30) {
				f.strike(s)
				s.progress(nil)
			}
			events := s.end()
			audited := s.audit()
			lost := 0
			for register := range registers {
				mutex, fenced := histories(events, register, audited)
				if check(t, "mutex", mutexModel, mutex) != porcupine.Ok {
					t.Errorf("register %d: two held the lease", register)
				}
				if check(t, "fence", fenceModel, fenced) != porcupine.Ok {
					t.Errorf("register %d: a superseded holder wrote", register)
				}
				t.Logf("register %d: %d operations on the lease, %d tokens and writes", register, len(mutex), len(fenced))
			}
			for _, h := range events {
				if h.What == "lost" {
					lost++
				}
			}
			t.Logf("%d leases were lost", lost)
			if n := s.regressions(); n > 0 {
				t.Errorf("%d writes came after one with a later token", n)
			}
		})
	}
}

// The control: without the guard the stopped holder's write comes after its successors'.
func TestTorture_withoutFencingAStaleWriteGoesThrough(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.naked = true
	s.start(3)
	for range 50 {
		stopPastTheLease(s)
		if s.regressions() > 0 {
			break
		}
	}
	s.end()
	if s.regressions() == 0 {
		t.Error("no stale write in 50 rounds: the histories with fencing prove nothing")
	}
}
