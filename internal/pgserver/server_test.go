package pgserver_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestStart(t *testing.T) {
	t.Parallel()
	odd := `it's "odd" \n` + "\nand # long"
	s := start(t,
		pgserver.Setting("max_connections", "17"),
		pgserver.Setting("max_connections", "23"),
		pgserver.Setting("gormlock.odd", odd))
	c := connect(t, s.DSN("postgres"))
	for setting, want := range map[string]string{
		"max_connections":         "23", // the last wins
		"gormlock.odd":            odd,
		"fsync":                   "off",
		"full_page_writes":        "off",
		"synchronous_commit":      "on",
		"listen_addresses":        "127.0.0.1",
		"unix_socket_directories": "",
		"port":                    strconv.Itoa(s.Port()),
		"server_encoding":         "UTF8",
	} {
		if got := value(t, c, "current_setting('"+setting+"')"); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	if s.Host() != "127.0.0.1" {
		t.Errorf("host %s", s.Host())
	}
	if version := value(t, c, "current_setting('server_version')"); !strings.HasPrefix(version, s.Version()) ||
		!strings.HasPrefix(s.Version(), strconv.Itoa(s.Major())) {
		t.Errorf("version %s, the server says %s", s.Version(), version)
	}
	if err := syscall.Kill(s.PID(), 0); err != nil {
		t.Errorf("process %d: %v", s.PID(), err)
	}
	info, err := os.Stat(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 && info.Sys().(*syscall.Stat_t).Uid == 0 {
		t.Error("the server runs as root")
	}
}

func TestCreateDatabase(t *testing.T) {
	t.Parallel()
	s := start(t)
	name := `it's "odd" ü/?#&%20`
	dsn, err := s.CreateDatabase(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	if got := value(t, connect(t, dsn), "current_database()"); got != name {
		t.Errorf("connected to %q, want %q", got, name)
	}
	_, err = s.CreateDatabase(context.Background(), name)
	mustFail(t, err, "already exists", name)
}

func TestServersAtOnce(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	var ports sync.Map
	for range 4 {
		all.Go(func() {
			s, err := pgserver.Start(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			if _, taken := ports.LoadOrStore(s.Port(), true); taken {
				t.Errorf("port %d twice", s.Port())
			}
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// The tests below set the environment and therefore run one by one.

func TestFailureLeavesNothing(t *testing.T) {
	dir := openDir(t, 0o777)
	t.Setenv("TMPDIR", dir)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx   context.Context
		opts  []pgserver.Option
		words []string
	}{
		"a value the server refuses": {context.Background(),
			[]pgserver.Option{pgserver.Setting("max_connections", "many")}, []string{"max_connections", "invalid value", "start on port"}},
		"a setting there is not": {context.Background(),
			[]pgserver.Option{pgserver.Setting("no_such_setting", "1")}, []string{"no_such_setting"}},
		"no name of a setting": {context.Background(),
			[]pgserver.Option{pgserver.Setting("a = 1\nport", "1")}, []string{"not the name of a setting"}},
		"a setting that is ours": {context.Background(),
			[]pgserver.Option{pgserver.Setting("Port", "5432")}, []string{"Port is decided by the server itself"}},
		"a directory without binaries": {context.Background(),
			[]pgserver.Option{pgserver.BinDir(dir)}, []string{dir, "holds no PostgreSQL server"}},
		"a context that has ended": {ended, nil, []string{"context canceled"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pgserver.Start(c.ctx, c.opts...)
			mustFail(t, err, c.words...)
			left, err := os.ReadDir(dir)
			if err != nil || len(left) > 0 {
				t.Errorf("left: %v %v", left, err)
			}
		})
	}
}

func TestContextEndsDuringStart(t *testing.T) {
	dir := openDir(t, 0o777)
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error)
	go func() {
		s, err := pgserver.Start(ctx)
		if err == nil {
			err = errors.Join(errors.New("started"), s.Stop())
		}
		done <- err
	}()
	pgtest.Eventually(t, "a data directory", func() bool {
		found, _ := filepath.Glob(dir + "/*/data/*")
		return len(found) > 0
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

func TestTMPDIR(t *testing.T) {
	t.Run("is used", func(t *testing.T) {
		dir := openDir(t, 0o777)
		t.Setenv("TMPDIR", dir)
		if s := start(t); filepath.Dir(s.Dir()) != dir {
			t.Errorf("the server is in %s, want %s", s.Dir(), dir)
		}
	})
	t.Run("closed to the server's user is not used", func(t *testing.T) {
		dir := openDir(t, 0o700)
		if os.Geteuid() != 0 {
			dir += "/missing"
		}
		t.Setenv("TMPDIR", dir)
		if s := start(t); strings.HasPrefix(s.Dir(), dir) {
			t.Errorf("the server is in %s", s.Dir())
		}
	})
	t.Run("nothing is left in it by a directory that was not used", func(t *testing.T) {
		dir := openDir(t, 0o700)
		t.Setenv("TMPDIR", dir)
		made, err := pgserver.MakeDir()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(made); err != nil {
			t.Fatal(err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

func TestDirectory_liesInMemoryUnlessTheServerSyncs(t *testing.T) {
	t.Setenv("TMPDIR", "")
	const memory = "/dev/shm"
	if pgserver.Free(memory) < 5<<30 {
		t.Skip("no room in memory")
	}
	quick, synced := start(t), start(t, pgserver.Setting("fsync", "on"))
	if filepath.Dir(quick.Dir()) != memory {
		t.Errorf("a server that syncs nothing is in %s, want %s", quick.Dir(), memory)
	}
	if filepath.Dir(synced.Dir()) == memory {
		t.Errorf("a server that syncs to its disk is in %s", synced.Dir())
	}
}

func TestEnvironmentDoesNotSteerTheServer(t *testing.T) { //nolint:paralleltest // it sets the environment
	for name, value := range map[string]string{
		"PGDATA": "/nonexistent", "PGPORT": "1", "PGHOST": "/nonexistent", "PGUSER": "nobody", "PGDATABASE": "none",
		"PGSSLMODE": "verify-full", "LC_ALL": "xx_XX.UTF-8", "LC_MESSAGES": "zz_ZZ", "LANG": "yy_YY",
	} {
		t.Setenv(name, value)
	}
	start(t)
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	s := start(t)
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", net.JoinHostPort(s.Host(), strconv.Itoa(s.Port())))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- s.Restart(context.Background()) }()
	pgtest.Eventually(t, "a refused port in the log", func() bool { return strings.Contains(s.Log(), "could not bind") })
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatalf("Restart does not wait for the port: %v", err)
	}
	connect(t, s.DSN("postgres"))
}
