package pgtest

import (
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Pgpool starts a Pgpool-II in front of servers, the first of which is the primary, and returns its connection string; lines are added to its
// configuration. It is stopped at the end of the test. The test is only skipped if GORMLOCK_WITHOUT_PGPOOL says that there is none.
func Pgpool(t testing.TB, dsns []string, lines ...string) (dsn string) {
	t.Helper()
	program, err := osexec.LookPath("pgpool")
	if err != nil {
		program, err = osexec.LookPath("/usr/sbin/pgpool")
	}
	if err != nil {
		if os.Getenv("GORMLOCK_WITHOUT_PGPOOL") != "" {
			t.Skip("left out by GORMLOCK_WITHOUT_PGPOOL: there is no pgpool here")
		}
		t.Fatalf("%v: scripts/require-pgpool installs it, GORMLOCK_WITHOUT_PGPOOL=1 leaves this test out", err)
	}
	dir, err := os.MkdirTemp("", "gormlock-pgpool-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := fmt.Sprintf("backend_clustering_mode = 'streaming_replication'\nlisten_addresses = '127.0.0.1'\nsocket_dir = '%[1]s'\npcp_socket_dir = '%[1]s'\n"+
		"pid_file_name = '%[1]s/pid'\nlogdir = '%[1]s'\nenable_pool_hba = off\nnum_init_children = 16\nmax_pool = 2\nsr_check_period = 1\nsr_check_user = 'postgres'\n", dir)
	for i, backend := range dsns {
		server, err := pgx.ParseConfig(backend)
		if err != nil {
			t.Fatal(err)
		}
		config += fmt.Sprintf("backend_hostname%[1]d = '%[2]s'\nbackend_port%[1]d = %[3]d\nbackend_weight%[1]d = %[1]d\nbackend_flag%[1]d = 'DISALLOW_TO_FAILOVER'\n", i, server.Host, server.Port)
		if i == 0 {
			dsn = backend
		}
	}
	port, control := freePort(t), freePort(t)
	config += fmt.Sprintf("port = %s\npcp_port = %s\n", port, control) + strings.Join(lines, "\n") + "\n"
	file, hba := filepath.Join(dir, "pgpool.conf"), filepath.Join(dir, "pool_hba.conf")
	for path, text := range map[string]string{file: config, hba: "local all postgres trust\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(program, "-n", "-f", file, "-a", hba)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // a fast shutdown: its children end with it
		_ = cmd.Wait()
		_ = log.Close()
	})
	for _, param := range [][2]string{{"host", "127.0.0.1"}, {"port", port}, {"sslmode", "disable"}} {
		if dsn, err = withParam(dsn, param[0], param[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := answers(t, dsn, bound); err != nil {
		said, _ := os.ReadFile(log.Name())
		t.Fatalf("pgpool does not answer: %v\n%s", err, said)
	}
	return dsn
}

// freePort returns a port on which nobody listens.
func freePort(t testing.TB) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = free.Close() }()
	_, port, _ := net.SplitHostPort(free.Addr().String())
	return port
}
