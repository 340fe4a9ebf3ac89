package pgserver_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// The test binary started again with this variable is a program that uses a server
// and that the test may kill.
const childMode = "PGSERVER_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		fmt.Fprintln(os.Stderr, child(mode))
		os.Exit(1)
	}
	pgtest.Main(m)
}

// child starts a server, says what it is, and waits to be killed.
func child(mode string) error {
	ctx := context.Background()
	fmt.Println("starting")
	s, err := pgserver.Start(ctx)
	if err != nil {
		return err
	}
	switch mode {
	case "restarted":
		if err := s.Crash(); err != nil {
			return err
		}
		if err := s.Restart(ctx); err != nil {
			return err
		}
	case "paused":
		if err := s.Pause(); err != nil {
			return err
		}
	case "with a child of its own":
		if err := exec.Command("sleep", "60").Start(); err != nil {
			return err
		}
	case "with a standby":
		if _, err := s.Standby(ctx); err != nil {
			return err
		}
	case "down":
		if err := s.Shutdown(); err != nil {
			return err
		}
	}
	fmt.Println(s.Port())
	select {}
}

func start(t testing.TB, opts ...pgserver.Option) *pgserver.Server {
	t.Helper()
	s, err := pgserver.Start(context.Background(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.StopAtEnd(t, s)
	return s
}

func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// execute runs statements one by one.
func execute(t testing.TB, c *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := c.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// value is the one value that a query returns, as text.
func value(t testing.TB, c *pgx.Conn, sql string) string {
	t.Helper()
	var v string
	if err := c.QueryRow(context.Background(), "select ("+sql+")::text").Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// openDir is a directory that every user may look into, unlike that of t.TempDir.
func openDir(t testing.TB, mode os.FileMode) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgserver-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustFail(t testing.TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
}
