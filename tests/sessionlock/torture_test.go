package sessionlock_test

import (
	"testing"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/torture"
)

// scene is a server and the workers that fight for its locks.
type scene struct {
	*torture.Scene
	server *pgserver.Server
}

func newScene(t *testing.T) *scene {
	t.Helper()
	server := pgtest.Fresh(t)
	s := &scene{torture.NewScene(t, server.DSN("postgres")), server}
	if err := fence.Migrate(t.Context(), pgtest.SQLDB(t, pgtest.Through(s.DSN))); err != nil {
		t.Fatal(err)
	}
	return s
}

// start runs workers until the end of the test.
func (s *scene) start(n int) {
	s.T.Helper()
	var env []string
	if s.PgBouncer != nil {
		env = append(env, workerPooled+"=1")
	}
	for range n {
		s.Start(env...)
	}
}

// faults are what happens to the workers' sessions. Each ends when the others have gone on.
var faults = []struct {
	name       string
	strike     func(s *scene)
	knowsFirst bool // the holder, before the server frees the lock
	pooled     bool
}{
	{name: "killed process", strike: func(s *scene) {
		s.Kill(s.Holder())
	}},
	{name: "stopped process with its connection cut", strike: stopAndCut},
	{name: "terminated backend", strike: func(s *scene) {
		s.Holder()
		s.Exec("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
	}},
	{name: "crashed server", strike: func(s *scene) { s.CrashUnderHolder(s.server) }},
	{name: "connection reset", strike: func(s *scene) {
		s.Holder().Proxy.ResetConnections()
	}},
	{name: "stalled connection", knowsFirst: true, strike: func(s *scene) {
		p := s.Holder()
		p.Proxy.Stall()
		<-time.After(5 * time.Second) // 5h, the server's own limit, at a heartbeat of a second
		p.Proxy.Cut()
		p.Proxy.Resume()
	}},
	{name: "restarted PgBouncer", pooled: true, strike: func(s *scene) {
		s.Holder()
		s.PgBouncer.Kill()
		s.PgBouncer.Start()
	}},
}

// stopAndCut stops a process without its connection until others hold what it held, then lets it go on.
func stopAndCut(s *scene) {
	p := s.Holder()
	p.Stop()
	p.Proxy.Cut()
	s.Progress(p)
	p.Continue()
}

// At most one holder that believes, and no write accepted from one that was superseded,
// whatever happens to sessions and processes.
func TestTorture_histories(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			s := newScene(t)
			if f.pooled {
				s.PgBouncer = pgtest.StartPgBouncer(t, s.DSN, "pool_mode = session", "max_client_conn = 200", "default_pool_size = 50")
			}
			s.start(3)
			s.Endure(func() { f.strike(s) })
			loss := seenInTime
			if f.knowsFirst {
				loss = seenFirst
			}
			s.Check(loss)
		})
	}
}

// The control: without the guard the stopped holder's write comes after its successors'.
func TestTorture_withoutFencingAStaleWriteGoesThrough(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.Regresses(s.start, func() { stopAndCut(s) })
}
