package wiretap_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
)

// table creates a table of the test's own, and returns a connection past the proxy
// to look into it and how many rows it has.
func table(t testing.TB) (direct *pgx.Conn, rows func() int) {
	t.Helper()
	direct = pgtest.Conn(t, pgtest.Schema())
	execute(t, direct, "create table t (n int)")
	return direct, func() (n int) {
		if err := direct.QueryRow(bg, "select count(*) from t").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// exec runs a statement beside the test.
func exec(c *pgx.Conn, sql string) chan error {
	done := make(chan error, 1)
	go func() {
		_, err := c.Exec(bg, sql)
		done <- err
	}()
	return done
}

func notDone(t testing.TB, done chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("the answer came through: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
}

func active(t testing.TB, direct *pgx.Conn, pid uint32) (is bool) {
	t.Helper()
	if err := direct.QueryRow(bg, "select state = 'active' from pg_stat_activity where pid = $1", pid).Scan(&is); err != nil {
		t.Fatal(err)
	}
	return is
}

func backendGone(t testing.TB, direct *pgx.Conn, pid uint32) bool {
	t.Helper()
	var gone bool
	if err := direct.QueryRow(bg, "select not exists (select from pg_stat_activity where pid = $1)", pid).Scan(&gone); err != nil {
		t.Fatal(err)
	}
	return gone
}

// unanswered is a statement that the server has executed, and whose answer is kept back.
func unanswered(t *testing.T) (*wiretap.Proxy, *pgx.Conn, chan error) {
	t.Helper()
	p, c := tapped(t)
	_, rows := table(t)
	p.StallAnswers()
	done := exec(c, "insert into t values (1)")
	pgtest.Eventually(t, "row, although the answer is kept", func() bool { return rows() == 1 })
	return p, c, done
}

func TestStallAnswers(t *testing.T) {
	t.Parallel()
	p, c, done := unanswered(t)
	notDone(t, done)
	p.Resume()
	if err := <-done; err != nil {
		t.Error(err)
	}
	execute(t, c, "select 1")
}

func TestStallRequests(t *testing.T) {
	t.Parallel()
	p, c := tapped(t)
	_, rows := table(t)
	p.Reset()
	p.StallRequests()
	done := exec(c, "insert into t values (1)")
	pgtest.Eventually(t, "statement", func() bool { return len(p.Statements()) == 1 })
	notDone(t, done)
	if rows() != 0 {
		t.Error("the statement reached the server")
	}
	p.Resume()
	if err := <-done; err != nil || rows() != 1 {
		t.Error(err, rows())
	}
	expect(t, p, 1, "insert into t values (1)")
}

func TestStall(t *testing.T) {
	t.Parallel()
	p, dsn := pgtest.Tap(t, pgtest.DSN(t))
	c := pgtest.Conn(t, pgtest.Through(dsn))
	p.Stall()
	done := exec(c, "select 1")
	connected := make(chan error, 1)
	go func() {
		other, err := pgx.Connect(bg, dsn)
		if err == nil {
			err = other.Close(bg)
		}
		connected <- err
	}()
	notDone(t, done)
	notDone(t, connected)
	p.Resume()
	if err := errors.Join(<-done, <-connected); err != nil {
		t.Error(err)
	}
}

// A client's own limit ends its wait, and the proxy's end ends what it kept.
func TestStalledClientGivesUp(t *testing.T) {
	t.Parallel()
	p, c := tapped(t)
	p.Stall()
	ctx, cancel := context.WithTimeout(bg, 50*time.Millisecond)
	defer cancel()
	if _, err := c.Exec(ctx, "select 1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want context.DeadlineExceeded", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*wiretap.Proxy){
		"Cut":              (*wiretap.Proxy).Cut,
		"ResetConnections": (*wiretap.Proxy).ResetConnections,
		"Close":            func(p *wiretap.Proxy) { _ = p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, client := tapped(t)
			direct, _ := table(t)
			done := exec(client, "select pg_sleep(600)")
			pid := client.PgConn().PID()
			pgtest.Eventually(t, "statement at work", func() bool { return active(t, direct, pid) })
			cut(p)
			if err := <-done; err == nil {
				t.Error("an answer came")
			}
			if p.Connections() != 0 {
				t.Errorf("%d connections", p.Connections())
			}
			// It sleeps and does not look at its connection, so it is woken.
			execute(t, direct, "select pg_cancel_backend("+itoa(pid)+")")
			pgtest.Eventually(t, "end of the backend", func() bool { return backendGone(t, direct, pid) })
		})
	}
}

func TestHowConnectionsEnd(t *testing.T) {
	t.Parallel()
	for want, cut := range map[error]func(*wiretap.Proxy){
		io.EOF:             (*wiretap.Proxy).Cut,
		syscall.ECONNRESET: (*wiretap.Proxy).ResetConnections,
	} {
		p, dsn := pgtest.Tap(t, pgtest.DSN(t))
		conn := pgtest.Conn(t, pgtest.Through(dsn)).PgConn().Conn()
		cut(p)
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

func TestCutIdle(t *testing.T) {
	t.Parallel()
	p, c := tapped(t)
	direct, _ := table(t)
	p.Cut()
	pgtest.Eventually(t, "end of the backend", func() bool { return backendGone(t, direct, c.PgConn().PID()) })
	if err := c.Ping(bg); err == nil {
		t.Error("the connection lives")
	}
}

func TestCutClients(t *testing.T) {
	t.Parallel()
	p, c := tapped(t)
	direct, rows := table(t)
	key := pgtest.Key(t)
	id, _ := key.Int64()
	if _, err := c.Exec(bg, "select pg_advisory_lock($1)", id); err != nil {
		t.Fatal(err)
	}
	pid := c.PgConn().PID()
	p.CutClients()
	if err := c.Ping(bg); err == nil {
		t.Fatal("the client's side lives")
	}
	p.Resume()
	for range 20 {
		if rows(); backendGone(t, direct, pid) || !pgtest.Held(t, key) {
			t.Fatal("the server's side has ended, or given up its lock")
		}
	}
	p.Cut()
	pgtest.AssertFree(t, key)
}

// What the server still sends to a client that is gone goes nowhere.
func TestCutClientsDuringStatement(t *testing.T) {
	t.Parallel()
	p, _, done := unanswered(t)
	p.CutClients()
	if err := <-done; err == nil {
		t.Error("the answer came through")
	}
	p.Resume()
	if p.Connections() != 1 {
		t.Errorf("%d connections to the server, want 1", p.Connections())
	}
}

func TestActions(t *testing.T) {
	t.Parallel()
	const insert = "insert into t values (1)"
	on := func(a wiretap.Action) func(string) wiretap.Action {
		return func(sql string) wiretap.Action {
			if strings.HasPrefix(sql, "insert") {
				return a
			}
			return wiretap.Pass
		}
	}
	for mode, opts := range map[string][]pgtest.Option{"extended": nil, "simple": {pgtest.SimpleProtocol()}} {
		t.Run(mode+" HoldAnswer", func(t *testing.T) {
			t.Parallel()
			p, c := tapped(t, opts...)
			_, rows := table(t)
			p.OnQuery(on(wiretap.HoldAnswer))
			execute(t, c, "select 1")
			done := exec(c, insert)
			pgtest.Eventually(t, "row", func() bool { return rows() == 1 })
			notDone(t, done)
			p.OnQuery(nil)
			p.Resume()
			if err := <-done; err != nil {
				t.Error(err)
			}
			execute(t, c, insert)
		})
		t.Run(mode+" HoldRequest", func(t *testing.T) {
			t.Parallel()
			p, c := tapped(t, opts...)
			_, rows := table(t)
			var asked atomic.Int32
			p.OnQuery(func(sql string) wiretap.Action {
				defer asked.Add(1)
				return on(wiretap.HoldRequest)(sql)
			})
			done := exec(c, insert)
			if err := p.AwaitHeld(t.Context()); err != nil {
				t.Error(err)
			}
			notDone(t, done)
			if rows() != 0 || asked.Load() != 1 {
				t.Error("the statement reached the server, or was asked about more than once")
			}
			p.Resume()
			if err := <-done; err != nil || rows() != 1 {
				t.Error(err, rows())
			}
		})
		t.Run(mode+" CutRequest", func(t *testing.T) {
			t.Parallel()
			p, c := tapped(t, opts...)
			direct, rows := table(t)
			pid := c.PgConn().PID()
			p.OnQuery(on(wiretap.CutRequest))
			if err := <-exec(c, insert); err == nil {
				t.Error("an answer came")
			}
			pgtest.Eventually(t, "end of the backend", func() bool { return backendGone(t, direct, pid) })
			if rows() != 0 {
				t.Error("the statement reached the server")
			}
		})
		t.Run(mode+" CutAnswer", func(t *testing.T) {
			t.Parallel()
			p, c := tapped(t, opts...)
			_, rows := table(t)
			p.OnQuery(on(wiretap.CutAnswer))
			if err := <-exec(c, insert); err == nil {
				t.Error("the answer came through")
			}
			// The cut comes after the work.
			if rows() != 1 {
				t.Error("the server did not do the work")
			}
		})
	}
}

// The moment of which nobody knows whether it has happened.
func TestCutAnswerOfCommit(t *testing.T) {
	t.Parallel()
	p, c := tapped(t)
	_, rows := table(t)
	p.OnQuery(func(sql string) wiretap.Action {
		if sql == "commit" {
			return wiretap.CutAnswer
		}
		return wiretap.Pass
	})
	tx, err := c.Begin(bg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(bg, "insert into t values ($1)", 1); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(bg); err == nil {
		t.Error("the commit was answered")
	}
	if rows() != 1 {
		t.Error("the commit did not happen")
	}
}

// What one statement is held for, others pass.
func TestHoldIsOfOneConnection(t *testing.T) {
	t.Parallel()
	p, dsn := pgtest.Tap(t, pgtest.SchemaDSN(t))
	a, b := pgtest.Conn(t, pgtest.Through(dsn)), pgtest.Conn(t, pgtest.Through(dsn))
	p.OnQuery(func(sql string) wiretap.Action {
		if sql == "select 'held'" {
			return wiretap.HoldAnswer
		}
		return wiretap.Pass
	})
	done := exec(a, "select 'held'")
	pgtest.Eventually(t, "statement", func() bool { return len(p.Statements()) == 1 })
	execute(t, b, "select 1")
	notDone(t, done)
	p.Resume()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Met is not held back yet: a Resume before AwaitHeld returns would come too early.
func TestAwaitHeld(t *testing.T) {
	t.Parallel()
	p, c := tapped(t)
	met, decide := make(chan struct{}), make(chan struct{})
	p.OnQuery(func(string) wiretap.Action {
		close(met)
		<-decide
		return wiretap.HoldRequest
	})
	done := exec(c, "select 1")
	<-met
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.AwaitHeld(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before anything is decided: %v", err)
	}
	p.OnQuery(nil)
	close(decide)
	if err := p.AwaitHeld(t.Context()); err != nil {
		t.Errorf("when it is held back: %v", err)
	}
	p.Resume()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	p, dsn := pgtest.Tap(t, pgtest.DSN(t))
	c := pgtest.Conn(t, pgtest.Through(dsn))
	p.Refuse()
	if other, err := pgx.Connect(bg, dsn); err == nil {
		_ = other.Close(bg)
		t.Error("a connection is let in")
	}
	execute(t, c, "select 1")
	p.Admit()
	other, err := pgx.Connect(bg, dsn)
	if err != nil {
		t.Fatal(err)
	}
	if p.Connections() != 2 || p.Opened() != 2 {
		t.Errorf("%d open, %d opened, want 2", p.Connections(), p.Opened())
	}
	if err := other.Close(bg); err != nil {
		t.Error(err)
	}
	pgtest.Eventually(t, "end of the connection", func() bool { return p.Connections() == 1 })
}

func TestServerThatIsGone(t *testing.T) {
	t.Parallel()
	s := pgtest.Fresh(t)
	p, dsn := pgtest.Tap(t, s.DSN("postgres"))
	c := pgtest.Conn(t, pgtest.Through(dsn))
	done := exec(c, "select pg_sleep(600)")
	pgtest.Eventually(t, "statement", func() bool { return len(p.Statements()) == 1 })
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "57P01") {
		t.Errorf("the server's last words are lost: %v", err)
	}
	pgtest.Eventually(t, "end of the connection", func() bool { return p.Connections() == 0 })
	if other, err := pgx.Connect(bg, dsn); err == nil {
		_ = other.Close(bg)
		t.Error("connected to nothing")
	}
	if err := s.Restart(bg); err != nil {
		t.Fatal(err)
	}
	execute(t, pgtest.Conn(t, pgtest.Through(dsn)), "select 1")
}

// A client that goes away takes its session with it.
func TestClientThatIsGone(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(*pgx.Conn) error{
		"in order": func(c *pgx.Conn) error { return c.Close(bg) },
		"at once":  func(c *pgx.Conn) error { return c.PgConn().Conn().Close() },
		"by reset": func(c *pgx.Conn) error {
			_ = c.PgConn().Conn().(*net.TCPConn).SetLinger(0)
			return c.PgConn().Conn().Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, c := tapped(t)
			direct, _ := table(t)
			pid := c.PgConn().PID()
			if err := how(c); err != nil {
				t.Fatal(err)
			}
			pgtest.Eventually(t, "end of the backend", func() bool { return backendGone(t, direct, pid) })
			pgtest.Eventually(t, "end of the connection", func() bool { return p.Connections() == 0 })
		})
	}
}

func TestNotTheProtocol(t *testing.T) {
	t.Parallel()
	p, dsn := pgtest.Tap(t, pgtest.DSN(t))
	for _, first := range []string{"GET / HTTP/1.0\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00", "\xff\xff\xff\xff\x00\x03\x00\x00"} {
		conn, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(first)); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("%d bytes in answer to %q", n, first)
		}
		_ = conn.Close()
	}
	execute(t, pgtest.Conn(t, pgtest.Through(dsn)), "select 1")
}

func TestListen(t *testing.T) {
	t.Parallel()
	if _, err := wiretap.Listen("localhost"); err == nil {
		t.Error("a target without a port")
	}
	p, err := wiretap.Listen("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(p.Addr())
	for dsn, want := range map[string]string{
		"postgres://u:p@db.example:5432/d?search_path=s&sslmode=require": "postgres://u:p@" + p.Addr() + "/d?search_path=s&sslmode=disable",
		"postgresql://u@/d?host=/tmp&port=1":                             "postgresql://u@" + p.Addr() + "/d?sslmode=disable",
		"host=db user=u sslmode=require":                                 "host=db user=u sslmode=require host=" + host + " port=" + port + " sslmode=disable",
	} {
		got, err := p.DSN(dsn)
		if err != nil || got != want {
			t.Errorf("%s becomes %s (%v), want %s", dsn, got, err, want)
		}
		config, err := pgx.ParseConfig(got)
		if err != nil || net.JoinHostPort(config.Host, itoa(uint32(config.Port))) != p.Addr() || config.TLSConfig != nil {
			t.Errorf("%s leads to %s:%d: %v", got, config.Host, config.Port, err)
		}
	}
	if _, err := p.DSN("postgres://%zz"); err == nil {
		t.Error("a connection string that is none")
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if conn, err := net.Dial("tcp", p.Addr()); err == nil {
		_ = conn.Close()
		t.Error("a closed proxy listens")
	}
}

func itoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
