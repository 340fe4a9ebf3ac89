package main_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/gormlock/gormlock/internal/pgserver"
)

// pooler starts a PgBouncer in front of a server and returns the way through it.
func pooler(t *testing.T, server *pgserver.Server, mode string) (dsn string) {
	t.Helper()
	binary, err := exec.LookPath("pgbouncer")
	if err != nil {
		binary, err = exec.LookPath("/usr/sbin/pgbouncer") // where Debian puts it, in not every user's path
	}
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
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	dir, err := os.MkdirTemp("", "gormlock-pgbouncer-") // t.TempDir can be entered by its owner alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ini := fmt.Sprintf("[databases]\n* = host=%s port=%d user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"+
		"auth_type = any\nunix_socket_dir =\npool_mode = %s\n", server.Host(), server.Port(), port, mode)
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(ini), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"-q", file}
	if os.Geteuid() == 0 {
		args = append([]string{"-u", "nobody"}, args...) // it refuses to run as root
	}
	var log bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	eventually(t, "answer of pgbouncer", func() (bool, string) {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return false, err.Error()
		}
		_ = c.Close()
		return true, ""
	})
	return "postgres://postgres@" + address + "/postgres?sslmode=disable"
}
