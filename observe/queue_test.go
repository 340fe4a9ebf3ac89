package observe_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/gormlock/gormlock/observe"
)

// gate is an observer that takes as long as it is told to.
type gate struct {
	open   chan struct{}
	mu     sync.Mutex
	events []int64
}

func (g *gate) Observe(_ context.Context, e observe.Event) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, e.Rows)
}

func TestQueue_nobodyWaitsForASlowObserver(t *testing.T) {
	t.Parallel()
	g := &gate{open: make(chan struct{})}
	q := observe.NewQueue(g, 10)
	for i := range int64(100) {
		q.Observe(t.Context(), observe.Event{Rows: i}) // returns, though the observer stands still
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Drain(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("drained while the observer stands still: %v", err)
	}
	close(g.open)
	if err := q.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// Ten wait; one more is with the observer where it was fetched before the queue was full.
	if n := int64(len(g.events)); n+q.Dropped() != 100 || n < 10 || n > 11 {
		t.Errorf("%d delivered, %d dropped", n, q.Dropped())
	}
	for i, rows := range g.events {
		if rows != int64(i) {
			t.Fatalf("the order is %v", g.events)
		}
	}
}

func TestQueue_goesOnAfterItWasEmpty(t *testing.T) {
	t.Parallel()
	g := &gate{open: make(chan struct{})}
	close(g.open)
	q := observe.NewQueue(g, 1)
	for range 50 {
		q.Observe(t.Context(), observe.Event{})
		if err := q.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(g.events) != 50 || q.Dropped() != 0 {
		t.Errorf("%d delivered, %d dropped", len(g.events), q.Dropped())
	}
	observe.NewQueue(nil, 0).Observe(t.Context(), observe.Event{})
}
