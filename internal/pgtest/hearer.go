package pgtest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/gormlock/gormlock/observe"
)

// Hearer is an observer that keeps its events.
type Hearer struct {
	mu     sync.Mutex
	events []observe.Event
}

// Observe implements [observe.Observer].
func (h *Hearer) Observe(_ context.Context, e observe.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// Events returns the events, from the first.
func (h *Hearer) Events() []observe.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events)
}

// Take is Events, and forgets them.
func (h *Hearer) Take() []observe.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := h.events
	h.events = nil
	return events
}

// Kinds returns the kinds of the events, from the first.
func (h *Hearer) Kinds() []observe.Kind {
	var kinds []observe.Kind
	for _, e := range h.Events() {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// Heard waits for as many events as want has, fails the test unless they are of these kinds, and returns them.
func (h *Hearer) Heard(t testing.TB, want ...observe.Kind) []observe.Event {
	t.Helper()
	Eventually(t, "the last event", func() bool { return len(h.Events()) >= len(want) })
	if got := h.Kinds(); !slices.Equal(got, want) {
		t.Fatalf("told of %v, want %v", got, want)
	}
	return h.Events()
}
