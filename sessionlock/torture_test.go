package sessionlock_test

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
)

// scene is a server and the workers that fight for its locks, each behind a proxy.
type scene struct {
	t         *testing.T
	server    *pgserver.Server
	db        *sql.DB
	pgbouncer *pgbouncer // all workers behind it, or nil
	naked     bool
	workers   []*process

	mu     sync.Mutex
	events []happened
}

// process is a worker that runs.
type process struct {
	proxy *wiretap.Proxy
	cmd   *exec.Cmd
	stdin io.Closer
	held  chan struct{} // gets a value when it takes a lock, if there is room
	read  chan struct{} // closed when its output has ended
}

func newScene(t *testing.T, server *pgserver.Server) *scene {
	t.Helper()
	s := &scene{t: t, server: server, db: pgtest.SQLDB(t, pgtest.Through(server.DSN("postgres")))}
	if err := fence.Migrate(t.Context(), s.db); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.ExecContext(t.Context(), `CREATE TABLE registers (id int PRIMARY KEY, fence bigint NOT NULL);
		CREATE TABLE audit (at bigserial PRIMARY KEY, register int NOT NULL, token bigint NOT NULL, write text NOT NULL);
		INSERT INTO registers SELECT i, 0 FROM generate_series(0, 9) i`); err != nil {
		t.Fatal(err)
	}
	return s
}

// start runs workers until the end of the test.
func (s *scene) start(n int) {
	s.t.Helper()
	for range n {
		target := address(s.t, s.server.DSN("postgres"))
		if s.pgbouncer != nil {
			target = address(s.t, s.pgbouncer.dsn)
		}
		proxy, err := wiretap.Listen(target)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = proxy.Close() })
		s.workers = append(s.workers, s.spawn(proxy))
	}
}

func (s *scene) spawn(proxy *wiretap.Proxy) *process {
	s.t.Helper()
	dsn, err := proxy.DSN(s.server.DSN("postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	p := &process{proxy: proxy, cmd: exec.Command(os.Args[0]), held: make(chan struct{}, 1), read: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerDSN+"="+dsn, workerDirect+"="+s.server.DSN("postgres"), "GOMAXPROCS=1")
	if s.pgbouncer != nil {
		p.cmd.Env = append(p.cmd.Env, workerPooled+"=1")
	}
	if s.naked {
		p.cmd.Env = append(p.cmd.Env, workerNaked+"=1")
	}
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	p.stdin = stdin
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go s.listen(p, out)
	return p
}

func (s *scene) listen(p *process, out io.Reader) {
	defer close(p.read)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var h happened
		if json.Unmarshal(lines.Bytes(), &h) != nil {
			continue // cut off by a kill
		}
		s.mu.Lock()
		s.events = append(s.events, h)
		s.mu.Unlock()
		if h.What == "held" {
			select {
			case p.held <- struct{}{}:
			default:
			}
		}
	}
}

// holder waits until some worker takes a lock and returns it.
func (s *scene) holder() *process {
	s.t.Helper()
	p := s.workers[rand.IntN(len(s.workers))]
	select {
	case <-p.held: // of the past
	default:
	}
	await(s.t, "a worker takes a lock", p.held)
	return p
}

// progress waits until other workers than p have taken locks.
func (s *scene) progress(p *process) {
	s.t.Helper()
	for _, other := range s.workers {
		if other != p {
			for range 2 {
				await(s.t, "another worker takes a lock", other.held)
			}
		}
	}
}

// end stops all workers and returns what they said.
func (s *scene) end() []happened {
	s.t.Helper()
	for _, p := range s.workers {
		_ = p.stdin.Close()
	}
	for _, p := range s.workers {
		<-p.read
		if err := p.cmd.Wait(); err != nil {
			s.t.Errorf("a worker: %v", err)
		}
	}
	return s.events
}

// kill ends a worker at once and starts another one in its place.
func (s *scene) kill(p *process) {
	s.t.Helper()
	_ = p.cmd.Process.Kill()
	<-p.read
	_ = p.cmd.Wait()
	for i := range s.workers {
		if s.workers[i] == p {
			s.workers[i] = s.spawn(p.proxy)
		}
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
		s.kill(s.holder())
	}},
	{name: "stopped process with its connection cut", strike: func(s *scene) {
		p := s.holder()
		_ = p.cmd.Process.Signal(syscall.SIGSTOP)
		p.proxy.Cut()
		s.progress(p)
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
	}},
	{name: "terminated backend", strike: func(s *scene) {
		s.holder()
		if _, err := s.db.ExecContext(s.t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"); err != nil {
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
	{name: "connection reset", strike: func(s *scene) {
		s.holder().proxy.ResetConnections()
	}},
	{name: "stalled connection", knowsFirst: true, strike: func(s *scene) {
		p := s.holder()
		p.proxy.Stall()
		<-time.After(5 * time.Second) // 5h, the server's own limit, at a heartbeat of a second
		p.proxy.Cut()
		p.proxy.Resume()
	}},
	{name: "restarted PgBouncer", pooled: true, strike: func(s *scene) {
		s.holder()
		s.pgbouncer.Kill()
		s.pgbouncer.Start()
	}},
}

// At most one holder that believes, and no write accepted from one that was superseded,
// whatever happens to sessions and processes.
func TestTorture_histories(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			s := newScene(t, pgtest.Fresh(t))
			if f.pooled {
				s.pgbouncer = startPgBouncer(t, s.server, "pool_mode = session", "max_client_conn = 200", "default_pool_size = 50")
			}
			s.start(3)
			for range rounds(1, 30) {
				f.strike(s)
				s.progress(nil)
			}
			events := s.end()
			audited := s.audit()
			for register := range registers {
				mutex, fenced := histories(events, register, f.knowsFirst, audited)
				if check(t, "mutex", mutexModel, mutex) != porcupine.Ok {
					t.Errorf("register %d: two held the lock", register)
				}
				if check(t, "fence", fenceModel, fenced) != porcupine.Ok {
					t.Errorf("register %d: a superseded holder wrote", register)
				}
				t.Logf("register %d: %d lock operations, %d tokens and writes", register, len(mutex), len(fenced))
			}
			ends := map[string]int{}
			for _, h := range events {
				ends[h.What]++
			}
			t.Logf("%d rounds: %v", rounds(1, 30), ends)
			if n := s.regressions(); n > 0 {
				t.Errorf("%d writes came after one with a later token", n)
			}
		})
	}
}

// The control: without the guard the stopped holder's write comes after its successors'.
func TestTorture_withoutFencingAStaleWriteGoesThrough(t *testing.T) {
	t.Parallel()
	s := newScene(t, pgtest.Fresh(t))
	s.naked = true
	s.start(3)
	for range 50 {
		faults[1].strike(s)
		if s.regressions() > 0 {
			break
		}
	}
	s.end()
	if s.regressions() == 0 {
		t.Error("no stale write in 50 rounds: the histories with fencing prove nothing")
	}
}

// audit returns the writes that were committed.
func (s *scene) audit() map[string]bool {
	s.t.Helper()
	// The pool may hold connections from before a crash.
	rows, err := pgtest.Conn(s.t, pgtest.Through(s.server.DSN("postgres"))).Query(s.t.Context(), "SELECT write FROM audit")
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	audited := map[string]bool{}
	for rows.Next() {
		var write string
		if err := rows.Scan(&write); err != nil {
			s.t.Fatal(err)
		}
		audited[write] = true
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return audited
}

// regressions counts the writes that carry an older token than the one before them. The
// row lock orders the writes of a register.
func (s *scene) regressions() int {
	s.t.Helper()
	var n int
	err := pgtest.Conn(s.t, pgtest.Through(s.server.DSN("postgres"))).QueryRow(s.t.Context(), `SELECT count(*) FROM
		(SELECT token, lag(token) OVER (PARTITION BY register ORDER BY at) before FROM audit) a WHERE token < before`).Scan(&n)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}
