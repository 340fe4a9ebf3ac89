package sessionlock_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// pgbouncer is a real one, in front of one server.
type pgbouncer struct {
	t       testing.TB
	program string
	file    string
	port    int
	dsn     string
	cmd     *exec.Cmd
	log     *bytes.Buffer
}

// startPgBouncer runs a PgBouncer in the given pool mode. As root it runs under another
// user, which it insists on.
func startPgBouncer(t testing.TB, server *pgserver.Server, lines ...string) *pgbouncer {
	t.Helper()
	program, err := findPgBouncer()
	if err != nil {
		if os.Getenv("GORMLOCK_WITHOUT_PGBOUNCER") != "" {
			t.Skip("left out by GORMLOCK_WITHOUT_PGBOUNCER: there is no pgbouncer here")
		}
		t.Fatalf("%v: scripts/require-pgbouncer installs it, GORMLOCK_WITHOUT_PGBOUNCER=1 leaves this test out", err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &pgbouncer{t: t, program: program, port: free.Addr().(*net.TCPAddr).Port}
	_ = free.Close()
	dir, err := os.MkdirTemp("", "gormlock-pgbouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b.file = filepath.Join(dir, "pgbouncer.ini")
	ini := fmt.Sprintf("[databases]\n* = host=%s port=%d user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"+
		"auth_type = any\nunix_socket_dir =\n%s\n", server.Host(), server.Port(), b.port, strings.Join(lines, "\n"))
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(b.file, []byte(ini), 0o644)); err != nil {
		t.Fatal(err)
	}
	through, err := url.Parse(server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	through.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port))
	b.dsn = through.String()
	b.start()
	t.Cleanup(b.kill)
	return b
}

// findPgBouncer also looks where Debian puts it, which is not in every user's path.
func findPgBouncer() (string, error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if found, _ := exec.LookPath("/usr/sbin/pgbouncer"); found != "" {
			return found, nil
		}
	}
	return program, err
}

func (b *pgbouncer) start() {
	b.t.Helper()
	b.log = &bytes.Buffer{}
	b.cmd = exec.Command(b.program, "-q", b.file)
	if os.Geteuid() == 0 {
		b.cmd = exec.Command(b.program, "-q", "-u", "nobody", b.file)
	}
	b.cmd.Stdout, b.cmd.Stderr = b.log, b.log
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	for deadline := time.Now().Add(bound); ; {
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)))
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(deadline) {
			b.kill()
			b.t.Fatalf("pgbouncer does not answer: %v\n%s", err, b.log)
		}
	}
}

func (b *pgbouncer) kill() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

// P17, L13: a session lock behind it would stay with a server connection of others.
func TestPgBouncer_transactionModeIsRefused(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t, pgserver.Setting("statement_timeout", "12s"))
	for name, lines := range map[string][]string{
		"last in first out": {"pool_mode = transaction"},
		"round robin":       {"pool_mode = transaction", "server_round_robin = 1"},
		"statement":         {"pool_mode = statement"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startPgBouncer(t, server, lines...)
			if name != "statement" {
				occupy(t, b.dsn, 3)
			}
			_, err := sessionlock.Open(t.Context(), b.dsn)
			if !errors.Is(err, sessionlock.ErrPooler) || !strings.Contains(err.Error(), "session mode") {
				t.Errorf("got %v", err)
			}
			_, err = sessionlock.Open(t.Context(), b.dsn, sessionlock.AllowPooler())
			if !errors.Is(err, sessionlock.ErrPooler) {
				t.Errorf("with AllowPooler: %v", err)
			}
			assertNoSettingLeft(t, b.dsn)
		})
	}
}

// occupy makes the pooler open n connections to the server.
func occupy(t testing.TB, dsn string, n int) {
	t.Helper()
	conns := make([]*pgx.Conn, n)
	for i := range conns {
		var err error
		if conns[i], err = pgx.Connect(t.Context(), simple(dsn)); err != nil {
			t.Fatal(err)
		}
		if _, err := conns[i].Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range conns {
		_ = conn.Close(t.Context())
	}
}

func simple(dsn string) string { return dsn + "&default_query_exec_mode=simple_protocol" }

// assertNoSettingLeft checks the server connections that other clients get.
func assertNoSettingLeft(t testing.TB, dsn string) {
	t.Helper()
	for range 8 {
		conn, err := pgx.Connect(t.Context(), simple(dsn))
		if err != nil {
			t.Fatal(err)
		}
		var timeout string
		if err := conn.QueryRow(t.Context(), "SHOW statement_timeout").Scan(&timeout); err != nil || timeout != "12s" {
			t.Errorf("another client has statement_timeout %s, %v", timeout, err)
		}
		_ = conn.Close(t.Context())
	}
}

func TestPgBouncer_sessionModeWithAllowPooler(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	observer := pgtest.Observe(t, server.DSN("postgres"))
	b := startPgBouncer(t, server, "pool_mode = session")
	if _, err := sessionlock.Open(t.Context(), b.dsn); !errors.Is(err, sessionlock.ErrPooler) || !strings.Contains(err.Error(), "AllowPooler") {
		t.Errorf("without AllowPooler: %v", err)
	}
	m, rival := openAt(t, b.dsn, sessionlock.AllowPooler()), openAt(t, server.DSN("postgres"))
	k := lockkey.Of("a")
	l := acquire(t, m, k)
	if held := observer.Locks(t, k); len(held) != 1 || held[0].PID != l.PID() {
		t.Errorf("%+v, the lock says %d", held, l.PID())
	}
	if _, err := rival.TryAcquire(t.Context(), k); !errors.Is(err, sessionlock.ErrNotAcquired) {
		t.Errorf("the rival got %v", err)
	}
	b.kill()
	assertLost(t, m, l)
	b.start()
	again, err := m.Acquire(t.Context(), k, sessionlock.Timeout(bound))
	if err != nil {
		t.Fatal(err)
	}
	release(t, again)
}
