package sessionlock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/sessionlock"
)

type recorder struct {
	mu     sync.Mutex
	events []observe.Event
}

func (r *recorder) Observe(_ context.Context, e observe.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) kinds() []observe.Kind {
	r.mu.Lock()
	defer r.mu.Unlock()
	var kinds []observe.Kind
	for _, e := range r.events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func TestObserver_isToldWhatHappens(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	m := openAt(t, migrate(t), sessionlock.Observer(r), sessionlock.Owner("me"))
	k := pgtest.Key(t)
	l := acquire(t, m, k, sessionlock.Fenced())
	if _, err := m.TryAcquire(t.Context(), k); !errors.Is(err, sessionlock.ErrNotAcquired) {
		t.Error(err)
	}
	if _, err := m.Acquire(t.Context(), k, sessionlock.Timeout(time.Millisecond)); !errors.Is(err, sessionlock.ErrLockTimeout) {
		t.Error(err)
	}
	release(t, l)
	lost := acquire(t, m, k)
	pgtest.Kill(t, lost.PID())
	assertLost(t, m, lost)

	want := []observe.Kind{observe.Acquired, observe.NotAcquired, observe.TimedOut, observe.Released, observe.Acquired, observe.Lost}
	for deadline := time.Now().Add(bound); len(r.kinds()) < len(want) && time.Now().Before(deadline); {
		<-time.After(time.Millisecond) // Lost is told beside, not before, the closing of the channel
	}
	if got := r.kinds(); !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for _, e := range r.events {
		if e.Source != "sessionlock" || e.Owner != "me" || e.Key != k.String() {
			t.Errorf("%v: %+v", e.Kind, e)
		}
	}
	if first := r.events[0]; first.Token != l.Token().Number || first.Wait <= 0 {
		t.Errorf("acquired: %+v", first)
	}
	if released := r.events[3]; released.Held <= 0 || released.Token != l.Token().Number {
		t.Errorf("released: %+v", released)
	}
	if last := r.events[5]; !errors.Is(last.Err, sessionlock.ErrLost) || last.Held <= 0 {
		t.Errorf("lost: %+v", last)
	}
}
