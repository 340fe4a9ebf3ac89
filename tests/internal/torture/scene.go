package torture

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// Scene is registers in a database and the workers that compete for them, each behind a proxy.
type Scene struct {
	T         *testing.T
	DSN       string            // the database with the registers
	PgBouncer *pgtest.PgBouncer // the managers of all workers connect through it; or nil

	naked   bool // workers write without a guard
	workers []*Process
	mu      sync.Mutex
	events  []Event
}

// NewScene makes the registers in the database of dsn.
func NewScene(t *testing.T, dsn string) *Scene {
	t.Helper()
	s := &Scene{T: t, DSN: dsn}
	s.Exec(`CREATE TABLE registers (id int PRIMARY KEY, fence bigint NOT NULL);
		CREATE TABLE audit (at bigserial PRIMARY KEY, register int NOT NULL, token bigint NOT NULL, write text NOT NULL);
		INSERT INTO registers SELECT i, 0 FROM generate_series(0, 9) i`)
	return s
}

// Exec executes statements without any worker.
func (s *Scene) Exec(statements string) {
	s.T.Helper()
	if _, err := s.conn().Exec(s.T.Context(), statements); err != nil {
		s.T.Fatal(err)
	}
}

// conn is a new connection: an older one may be from before a crash.
func (s *Scene) conn() *pgx.Conn {
	s.T.Helper()
	return pgtest.Conn(s.T, pgtest.Through(s.DSN))
}

// Start runs one more worker until the end of the test, with variables in its environment.
func (s *Scene) Start(env ...string) {
	s.T.Helper()
	dsn := s.DSN
	if s.PgBouncer != nil {
		dsn = s.PgBouncer.DSN()
	}
	p := &Process{env: env}
	p.Proxy, p.dsn = pgtest.Tap(s.T, dsn)
	s.run(p)
	s.workers = append(s.workers, p)
}

// Holder waits until some worker takes a lock and returns it.
func (s *Scene) Holder() *Process {
	s.T.Helper()
	p := s.workers[rand.IntN(len(s.workers))]
	select {
	case <-p.held: // from an earlier lock
	default:
	}
	pgtest.Await(s.T, "a worker takes a lock", p.held)
	return p
}

// CrashUnderHolder makes the server crash while a worker holds a lock, and starts it again.
func (s *Scene) CrashUnderHolder(server *pgserver.Server) {
	s.T.Helper()
	s.Holder()
	if err := server.Crash(); err != nil {
		s.T.Error(err)
	}
	if err := server.Restart(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
}

// Progress waits until other workers than p, which may be nil, have taken locks.
func (s *Scene) Progress(p *Process) {
	s.T.Helper()
	for _, other := range s.workers {
		if other != p {
			for range 2 {
				pgtest.Await(s.T, "another worker takes a lock", other.held)
			}
		}
	}
}

// Kill ends a worker at once and starts another one in its place.
func (s *Scene) Kill(p *Process) {
	s.T.Helper()
	_ = p.cmd.Process.Kill()
	<-p.read
	_ = p.cmd.Wait()
	successor := &Process{Proxy: p.Proxy, dsn: p.dsn, env: p.env}
	s.run(successor)
	s.workers[slices.Index(s.workers, p)] = successor
}

// End stops all workers and returns their events.
func (s *Scene) End() []Event {
	s.T.Helper()
	for _, p := range s.workers {
		_ = p.stdin.Close()
	}
	for _, p := range s.workers {
		<-p.read
		if err := p.cmd.Wait(); err != nil {
			s.T.Errorf("a worker: %v", err)
		}
	}
	return s.events
}
