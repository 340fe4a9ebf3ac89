package observe_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
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
	if !slices.IsSorted(g.events) { // with gaps: the observer fetches its first event when it comes to run
		t.Fatalf("the order is %v", g.events)
	}
}

func TestContain_nobodyWaitsForAnObserverThatHangs(t *testing.T) {
	t.Parallel()
	g := &gate{open: make(chan struct{})}
	o := observe.Contain(g)
	told := make(chan struct{})
	go func() {
		defer close(told)
		for i := range int64(500) {
			o.Observe(t.Context(), observe.Event{Rows: i})
		}
	}()
	<-told // it would hang here
	close(g.open)
	for {
		g.mu.Lock()
		n := len(g.events)
		g.mu.Unlock()
		if n == 500 {
			break
		}
		runtime.Gosched()
	}
	for i, rows := range g.events {
		if rows != int64(i) {
			t.Fatalf("the order is %v", g.events)
		}
	}
	for { // it has come through, and is waited for again: what it is told it has when the call returns
		before := len(g.events)
		o.Observe(t.Context(), observe.Event{})
		g.mu.Lock()
		after := len(g.events)
		g.mu.Unlock()
		if after > before {
			return
		}
	}
}

type exits struct{ counter }

func (e *exits) Observe(ctx context.Context, event observe.Event) {
	e.counter.Observe(ctx, event)
	runtime.Goexit()
}

func TestContain_anObserverThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	inner := &exits{}
	o := observe.Contain(inner)
	for range 3 {
		o.Observe(t.Context(), observe.Event{})
	}
	mustReach(t, 3, &inner.counter)
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
