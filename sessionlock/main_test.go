package sessionlock_test

import (
	"context"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/sessionlock"
)

func TestMain(m *testing.M) {
	pgtest.Process(holderDSN, hold)
	pgtest.Main(m)
}

// open returns a manager on the test's database, closed at the end of the test.
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
