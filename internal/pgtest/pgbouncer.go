package pgtest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// PgBouncer is a real PgBouncer in front of one server.
type PgBouncer struct {
	t       testing.TB
	program string
	server  string // the connection string that bypasses it
	file    string
	address string
	cmd     *osexec.Cmd
	exited  chan error // what it has exited with; closed then
	log     *bytes.Buffer
}

// StartPgBouncer starts a PgBouncer in front of the server of dsn; lines are added to the section [pgbouncer] of its configuration. It is stopped
// at the end of the test. The test is only skipped if GORMLOCK_WITHOUT_PGBOUNCER says that there is none.
func StartPgBouncer(t testing.TB, dsn string, lines ...string) *PgBouncer {
	t.Helper()
	program, err := osexec.LookPath("pgbouncer")
	if err != nil {
		program, err = osexec.LookPath("/usr/sbin/pgbouncer") // this directory is not in every user's path
	}
	if err != nil {
		if os.Getenv("GORMLOCK_WITHOUT_PGBOUNCER") != "" {
			t.Skip("left out by GORMLOCK_WITHOUT_PGBOUNCER: there is no pgbouncer here")
		}
		t.Fatalf("%v: scripts/require-pgbouncer installs it, GORMLOCK_WITHOUT_PGBOUNCER=1 leaves this test out", err)
	}
	server, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	b := &PgBouncer{t: t, program: program, server: dsn, address: net.JoinHostPort("127.0.0.1", port)}
	dir, err := os.MkdirTemp("", "gormlock-pgbouncer-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b.file = filepath.Join(dir, "pgbouncer.ini")
	upstream := fmt.Sprintf("host=%s port=%d user=%s", server.Host, server.Port, server.User)
	if server.Password != "" {
		upstream += " password=" + server.Password
	}
	ini := "[databases]\n* = " + upstream + "\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " + port +
		"\nauth_type = any\nunix_socket_dir =\n" + strings.Join(lines, "\n") + "\n"
	// If the test runs as root, PgBouncer runs as another user, who must be able to read the file.
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(b.file, []byte(ini), 0o644)); err != nil {
		t.Fatal(err)
	}
	b.Start()
	t.Cleanup(b.Kill)
	return b
}

// DSN is the connection string to the server through PgBouncer.
func (b *PgBouncer) DSN() string {
	b.t.Helper()
	dsn := b.server
	host, port, _ := net.SplitHostPort(b.address)
	for _, param := range [][2]string{{"host", host}, {"port", port}, {"sslmode", "disable"}} {
		var err error
		if dsn, err = withParam(dsn, param[0], param[1]); err != nil {
			b.t.Fatal(err)
		}
	}
	return dsn
}

// Start starts it again after Kill.
func (b *PgBouncer) Start() {
	b.t.Helper()
	b.log = &bytes.Buffer{}
	b.cmd = osexec.Command(b.program, "-q", b.file)
	if os.Geteuid() == 0 {
		b.cmd = osexec.Command(b.program, "-q", "-u", "nobody", b.file)
	}
	b.cmd.Stdout, b.cmd.Stderr = b.log, b.log
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.exited = make(chan error, 1)
	go func(cmd *osexec.Cmd, exited chan<- error) { exited <- cmd.Wait(); close(exited) }(b.cmd, b.exited)
	err := poll(b.t.Context(), bound, func() (bool, error) {
		select {
		case err := <-b.exited:
			return false, fmt.Errorf("it has ended: %w", cmp.Or(err, errors.New("exit status 0")))
		default:
		}
		c, err := net.Dial("tcp", b.address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil, nil
	})
	if err != nil {
		b.Kill()
		b.t.Fatalf("pgbouncer does not answer: %v\n%s", err, b.log)
	}
}

// Kill ends it at once, as a crash does.
func (b *PgBouncer) Kill() {
	_ = b.cmd.Process.Kill()
	<-b.exited //nolint:errcheck // it was killed
}
