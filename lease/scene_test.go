package lease_test

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lease"
)

// scene is a server and the workers that fight for its leases, each behind a proxy.
type scene struct {
	t         *testing.T
	server    *pgserver.Server
	address   *address   // that leads to the server, or to its successor
	pgbouncer *pgbouncer // all workers behind it, or nil
	naked     bool
	long      bool     // the work of each worker
	skews     []string // of the workers' clocks, in turn
	workers   []*process

	mu     sync.Mutex
	events []happened
}

// process is a worker that runs.
type process struct {
	proxy *wiretap.Proxy
	skew  string
	cmd   *exec.Cmd
	stdin io.Closer
	held  chan struct{} // gets a value when it takes a lease, if there is room
	read  chan struct{} // closed when its output has ended
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, server: pgtest.Fresh(t), skews: []string{"0s"}}
	s.address = newAddress(t, s.server)
	db := pgtest.SQLDB(t, pgtest.Through(s.server.DSN("postgres")))
	if err := lease.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE registers (id int PRIMARY KEY, fence bigint NOT NULL);
		CREATE TABLE audit (at bigserial PRIMARY KEY, register int NOT NULL, token bigint NOT NULL, write text NOT NULL);
		INSERT INTO registers SELECT i, 0 FROM generate_series(0, 9) i`); err != nil {
		t.Fatal(err)
	}
	return s
}

// start runs workers until the end of the test.
func (s *scene) start(n int) {
	s.t.Helper()
	for i := range n {
		target := s.address.String()
		if s.pgbouncer != nil {
			target = s.pgbouncer.Addr()
		}
		proxy, err := wiretap.Listen(target)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = proxy.Close() })
		s.workers = append(s.workers, s.spawn(proxy, s.skews[i%len(s.skews)]))
	}
}

func (s *scene) spawn(proxy *wiretap.Proxy, skew string) *process {
	s.t.Helper()
	p := &process{proxy: proxy, skew: skew, cmd: exec.Command(os.Args[0]), held: make(chan struct{}, 1), read: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerDSN+"="+s.dsn(proxy.Addr())+"&default_query_exec_mode=exec&connect_timeout=2",
		workerDirect+"="+s.dsn(s.address.String())+"&connect_timeout=2", workerSkew+"="+skew, "GOMAXPROCS=1")
	if s.naked {
		p.cmd.Env = append(p.cmd.Env, workerNaked+"=1")
	}
	if s.long {
		p.cmd.Env = append(p.cmd.Env, workerLong+"=1")
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

// dsn is that of the server by another address.
func (s *scene) dsn(host string) string {
	u, err := url.Parse(s.server.DSN("postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	u.Host = host
	return u.String()
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

// holder waits until some worker takes a lease and returns it.
func (s *scene) holder() *process {
	s.t.Helper()
	p := s.workers[rand.IntN(len(s.workers))]
	select {
	case <-p.held: // of the past
	default:
	}
	await(s.t, "a worker takes a lease", p.held)
	return p
}

// progress waits until other workers than p have taken leases.
func (s *scene) progress(p *process) {
	s.t.Helper()
	for _, other := range s.workers {
		if other != p {
			for range 2 {
				await(s.t, "another worker takes a lease", other.held)
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
			s.workers[i] = s.spawn(p.proxy, p.skew)
		}
	}
}

// failover makes a synchronous standby, kills the primary and promotes the standby.
func (s *scene) failover() {
	s.t.Helper()
	db, err := sql.Open("pgx", s.server.DSN("postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	standby := follow(s.t, s.server)
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if _, err := db.ExecContext(s.t.Context(), statement); err != nil {
			s.t.Fatal(err)
		}
	}
	for synchronous := false; !synchronous; {
		const look = "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum') AND flush_lsn >= pg_current_wal_flush_lsn())"
		if err := db.QueryRowContext(s.t.Context(), look).Scan(&synchronous); err != nil {
			s.t.Fatal(err)
		}
	}
	s.holder()
	if err := s.server.Crash(); err != nil {
		s.t.Error(err)
	}
	if err := standby.Promote(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	_ = s.server.Stop()
	s.server = standby
	s.address.lead(standby)
}

// audit returns the writes that were committed.
func (s *scene) audit() map[string]bool {
	s.t.Helper()
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
