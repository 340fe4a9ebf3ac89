package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/observe"
)

// holdings are the leases that a manager holds. Its mutex guards them and the state of each lease, so a loss ends
// contexts before anybody hears of the next holder. No statement and no observer runs under the mutex: events are
// returned, and reported after it is unlocked.
type holdings struct {
	clock   holder.Clock
	wakeBy  func(at time.Duration) // makes the background call due by this time
	observe func(ctx context.Context, e observe.Event)

	mu     sync.Mutex
	closed bool
	held   map[holder.Place]*Lease
}

// state is the state of a lease. The mutex of holdings guards it.
type state struct {
	proof    holder.Instant // when the last statement that was answered in time was sent
	renewAt  time.Duration  // on the monotonic clock
	renewing bool           // a statement of renewals is on its way
	refusal  error          // of the last renewal, if the server answered with an error
	err      error          // why it is not held any more
	lost     chan struct{}  // made by the first call of Lost
	bound    holder.Contexts
}

var (
	// errTaken says that somebody else was granted the lease.
	errTaken = errors.New("somebody else has it")
	// errGone says that the row is gone, or belongs to another acquisition.
	errGone = errors.New("the database says that it ran out or is somebody else's")
)

// isClosed reports whether the manager was closed: no lease is held, and none will be.
func (h *holdings) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// add adds a lease that is held from its proof on. It reports false if the answer came too late.
func (h *holdings) add(l *Lease) bool {
	h.mu.Lock()
	now := h.clock()
	if h.closed || l.ranOut(now) {
		h.mu.Unlock()
		return false
	}
	tell := func() {}
	if old := h.held[l.claim.place()]; old != nil {
		tell = h.lose(old, errTaken) // before the new holder is told
	}
	h.held[l.claim.place()] = l
	l.state.renewAt = l.state.proof.Mono + l.ttl/3
	due := l.dueAt(now)
	h.mu.Unlock()
	h.wakeBy(due)
	tell()
	return true
}

// due marks leases that ran out as lost. It returns those to renew now, and those that are nearly due: leases renewed
// together stay together. Those that the server refused to renew the last time are apart. next is the time of the next look.
func (h *holdings) due(now holder.Instant) (batch, refused []*Lease, next time.Duration, told []func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	due := false
	for _, l := range h.held {
		switch {
		case l.ranOut(now):
			told = append(told, h.lose(l, l.whyRanOut()))
		case l.renews:
			due = due || l.state.renewAt <= now.Mono
		}
	}
	next = now.Mono + idle
	for _, l := range h.held {
		if l.renews && due && (l.state.renewAt <= now.Mono || !l.state.renewing && l.state.renewAt-l.ttl/6 <= now.Mono) {
			l.state.renewing = true
			l.state.renewAt = now.Mono + l.ttl/4 // a second renewal starts then if this one has no answer
			if l.state.refusal != nil {
				refused = append(refused, l)
			} else {
				batch = append(batch, l)
			}
		}
		next = min(next, l.dueAt(now))
	}
	return batch, refused, next, told
}

// renewed stores the result of a renewal that was sent at the time sent.
func (h *holdings) renewed(batch []*Lease, found []renewed, sent holder.Instant) (told []func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock()
	for i, l := range batch {
		switch {
		case l.state.err != nil:
		case l.ranOut(now): // the answer came too late
			told = append(told, h.lose(l, l.whyRanOut()))
		case found[i] == rowGone:
			told = append(told, h.lose(l, errGone))
		case found[i] == rowLocked:
			l.state.renewAt = now.Mono + l.ttl/20
		default:
			if sent.Mono > l.state.proof.Mono {
				l.state.proof = sent
			}
			l.state.renewAt = l.state.proof.Mono + l.ttl/3
		}
	}
	return told
}

// renewalEnded notes how the renewal of a batch has ended. If it failed, the leases are due again soon.
func (h *holdings) renewalEnded(batch []*Lease, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock()
	for _, l := range batch {
		l.state.renewing = false
		if err == nil || sqlstate.TakesBack(err) { // after any other error, an earlier refusal may still hold
			l.state.refusal = err
		}
		if err != nil {
			l.state.renewAt = min(l.state.renewAt, now.Mono+l.ttl/20)
		}
		if l.state.err == nil {
			h.wakeBy(l.state.renewAt)
		}
	}
}

// look marks a lease that ran out as lost, and returns why it is not held, or nil. It is called with mu held; the caller
// calls tell after unlocking it.
func (h *holdings) look(l *Lease) (tell func(), err error) {
	tell = func() {}
	if l.state.err == nil && l.ranOut(h.clock()) {
		tell = h.lose(l, l.whyRanOut())
	}
	return tell, l.state.err
}

// lose marks a lease as lost. It is called with mu held; the caller calls what it returns after unlocking it.
func (h *holdings) lose(l *Lease, cause error) (tell func()) {
	err := leaseError(l.key, ErrLost, cause, "")
	l.state.err = err
	if l.state.lost == nil {
		l.state.lost = make(chan struct{})
	}
	close(l.state.lost)
	h.end(l, err)
	e := observe.Event{
		Kind: observe.Lost, Key: l.key.String(), Mode: "exclusive", Token: l.Token().Number,
		Held: h.clock().Since(l.since), Err: err,
	}
	return func() { h.observe(context.Background(), e) }
}

// end stops everything that belongs to a held lease. It is called with mu held.
func (h *holdings) end(l *Lease, cause error) {
	if h.held[l.claim.place()] == l {
		delete(h.held, l.claim.place())
	}
	l.state.bound.End(cause)
}

// close marks all leases as lost, and returns them to be released. first is false if it was called before.
func (h *holdings) close() (left []item, told []func(), first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first, h.closed = !h.closed, true
	for _, l := range h.held {
		left = append(left, item{l.claim, l.atLeast})
		told = append(told, h.lose(l, ErrClosed))
	}
	return left, told, first
}

// remains returns how long the holder may still rely on the lease.
func (l *Lease) remains(now holder.Instant) time.Duration {
	return believed(l.ttl) - now.Since(l.state.proof)
}

// dueAt returns when to look at a lease: when it is to be renewed, and when it runs out.
func (l *Lease) dueAt(now holder.Instant) time.Duration {
	at := now.Mono + l.remains(now)
	if l.renews {
		at = min(at, l.state.renewAt)
	}
	return at
}

func (l *Lease) ranOut(now holder.Instant) bool { return l.remains(now) <= 0 }

// believed is how long after sending a statement the holder relies on its answer: a little less than the length of the lease, because clocks do not
// run equally fast.
func believed(ttl time.Duration) time.Duration { return ttl - ttl/50 }

func (l *Lease) whyRanOut() error {
	switch {
	case l.renews && l.state.refusal != nil:
		return fmt.Errorf("no renewal was confirmed for %s: %w", believed(l.ttl), l.state.refusal)
	case l.renews:
		return fmt.Errorf("no renewal was confirmed for %s", believed(l.ttl))
	}
	return fmt.Errorf("it ran out after %s", believed(l.ttl))
}
