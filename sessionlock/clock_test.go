package sessionlock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// L4: Err looks at the clocks itself, for the process may have been stopped and nothing
// else of the manager has run since.
func TestErr_asksBothClocks(t *testing.T) {
	t.Parallel()
	for name, proof := range map[string]func() time.Time{
		"monotonic": func() time.Time { return time.Now().Add(-7 * time.Second) },
		// While a machine sleeps the monotonic clock stands still.
		"wall": func() time.Time { return time.Now().Round(0).Add(-7 * time.Second) },
	} {
		m, err := Open(t.Context(), pgtest.DSN(t))
		if err != nil {
			t.Fatal(err)
		}
		l, err := m.Acquire(t.Context(), pgtest.Key(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if l.Err() != nil {
			t.Errorf("%s: %v", name, l.Err())
		}
		m.mu.Lock()
		l.s.proof = proof()
		m.mu.Unlock()
		if err := l.Err(); !errors.Is(err, ErrLost) || !errors.Is(err, errSilent) {
			t.Errorf("%s: Err is %v", name, err)
		}
		select {
		case <-l.Lost():
		default:
			t.Errorf("%s: not lost", name)
		}
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
