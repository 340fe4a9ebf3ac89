package sessionlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/sessionlock"
)

// ear collects what it hears.
func ear(t testing.TB, m *sessionlock.Manager, ctx context.Context) (heard <-chan string, ended <-chan error) { //nolint:revive // the test comes first here
	t.Helper()
	payloads, end := make(chan string, 100), make(chan error, 1)
	go func() {
		end <- m.Listen(ctx, "Ear", func(payload string) { payloads <- payload })
	}()
	return payloads, end
}

func hear(t testing.TB, heard <-chan string) string {
	t.Helper()
	select {
	case payload := <-heard:
		return payload
	case <-time.After(bound):
		t.Fatal("nothing is heard")
		return ""
	}
}

func TestListen_hearsWhatIsNotified(t *testing.T) {
	t.Parallel()
	m := open(t, sessionlock.Heartbeat(time.Second))
	ctx, cancel := context.WithCancel(t.Context())
	heard, ended := ear(t, m, ctx)
	if first := hear(t, heard); first != "" {
		t.Fatalf("before anything was notified %q", first)
	}
	conn := pgtest.Conn(t)
	notify := func(payload string) {
		if _, err := conn.Exec(t.Context(), `SELECT pg_notify('Ear', $1)`, payload); err != nil {
			t.Fatal(err)
		}
	}
	notify("a")
	<-time.After(1500 * time.Millisecond) // longer than a heartbeat
	notify("b")
	if got := []string{hear(t, heard), hear(t, heard)}; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("heard %q", got)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// P26: a listener is told that it may have missed something.
func TestListen_connectsAgain(t *testing.T) {
	t.Parallel()
	proxy, dsn := pgtest.Tap(t, pgtest.DSN(t))
	m := openAt(t, dsn)
	heard, ended := ear(t, m, t.Context())
	hear(t, heard)
	proxy.ResetConnections()
	if again := hear(t, heard); again != "" {
		t.Errorf("after the reset %q", again)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, sessionlock.ErrClosed) {
		t.Errorf("ended with %v", err)
	}
	if err := m.Listen(t.Context(), "Ear", func(string) {}); !errors.Is(err, sessionlock.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
