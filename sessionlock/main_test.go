package sessionlock_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/sessionlock"
)

func TestMain(m *testing.M) {
	for variable, run := range map[string]func() error{workerDSN: work, holderDSN: hold} {
		if os.Getenv(variable) == "" {
			continue
		}
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, "process of a test:", err)
			os.Exit(1)
		}
		return
	}
	pgtest.Main(m)
}

// open returns a manager on the test's database, closed at its end.
func open(t testing.TB, opts ...sessionlock.Option) *sessionlock.Manager {
	t.Helper()
	return openAt(t, pgtest.DSN(t), opts...)
}

func openAt(t testing.TB, dsn string, opts ...sessionlock.Option) *sessionlock.Manager {
	t.Helper()
	m, err := sessionlock.Open(t.Context(), dsn, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// address returns the address of a server.
func address(t testing.TB, dsn string) string {
	t.Helper()
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
}
