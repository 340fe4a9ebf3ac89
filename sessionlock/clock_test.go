package sessionlock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// L4: Err looks at the clocks itself, because the process may have been stopped, and nothing else of the manager has run since.
func TestErr_asksBothClocks(t *testing.T) {
	t.Parallel()
	for name, proof := range map[string]func() time.Time{
		"monotonic": func() time.Time { return time.Now().Add(-7 * time.Second) },
		// While a machine sleeps, the monotonic clock stands still.
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
		m.core.mu.Lock()
		l.session.provenAt = proof()
		m.core.mu.Unlock()
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

// A process that was stopped passes no lock on that it may have lost meanwhile.
func TestRelease_handsNothingOnThatIsNotProven(t *testing.T) {
	t.Parallel()
	m, err := Open(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	k := pgtest.Key(t)
	first, err := m.Acquire(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan *Lock)
	go func() {
		l, err := m.Acquire(t.Context(), k)
		if err != nil {
			t.Error(err)
		}
		next <- l
	}()
	for waits := false; !waits; {
		m.core.mu.Lock()
		e := m.core.ledger.entries[first.entry.id]
		if waits = e.queue.first != nil; waits {
			first.session.provenAt = time.Now().Add(-7 * time.Second)
		}
		m.core.mu.Unlock()
	}
	if err := first.Release(t.Context()); !errors.Is(err, ErrLost) {
		t.Errorf("Release says %v", err)
	}
	l := <-next
	if l.PID() == first.PID() {
		t.Error("handed on by the session that was not heard of")
	}
	if err := errors.Join(l.Release(t.Context()), m.Close(t.Context())); err != nil {
		t.Error(err)
	}
}
