// Package poll looks at something while callers ask for it: once for all of them, and not for long after the last.
package poll

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	unused      = time.Minute      // after so long without a caller the looking stops
	lookTimeout = 15 * time.Second // for one look
	overdue     = 6 * time.Second  // when callers are told that a look takes long
)

// ErrClosed says that the poller was closed.
var ErrClosed = errors.New("gormlock: inspect: the page is closed")

// Poller looks again and again while callers ask, in one goroutine. [New] makes it, and [Poller.Close] ends it.
type Poller[T any] struct {
	look  func(context.Context) (T, error)
	every time.Duration

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	running bool
	asked   time.Time
	last    State[T]
	fresh   chan struct{} // closed by the next look
}

// State is the result of the last looks.
type State[T any] struct {
	Seen    *T        // the last result, nil if there is none yet
	Failure error     // the error of the last look, or nil
	Since   time.Time // when the current series of failures began

	looked time.Time
	begun  time.Time // when callers began to ask again
}

// New is a poller that calls look at this interval while callers ask. Calls of look do not overlap.
func New[T any](every time.Duration, look func(context.Context) (T, error)) *Poller[T] {
	p := &Poller[T]{look: look, every: every, fresh: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Close ends the looking, and returns when it has ended. Later calls of Ask get [ErrClosed].
func (p *Poller[T]) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.wg.Wait()
}

// Ask returns a result that is not older than one and a half times the interval. If a look takes long, it returns what is known.
func (p *Poller[T]) Ask(ctx context.Context) (State[T], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return State[T]{}, ErrClosed
	}
	p.asked = time.Now()
	if !p.running {
		p.running, p.last.begun = true, p.asked
		p.wg.Go(p.run)
	}
	if time.Since(p.last.looked) > p.every+p.every/2 {
		fresh, soon := p.fresh, time.NewTimer(p.last.worth())
		defer soon.Stop()
		p.mu.Unlock()
		select {
		case <-fresh:
		case <-soon.C:
		case <-ctx.Done():
		}
		p.mu.Lock()
	}
	return p.last.at(time.Now(), p.every), nil
}

// worth is how long it is worth waiting for a newer state: longer if there is none yet.
func (s State[T]) worth() time.Duration {
	if s.Seen == nil && s.Failure == nil {
		return lookTimeout
	}
	return 3 * time.Second
}

// at is the state at a time: a look that takes too long counts as a server that does not answer.
func (s State[T]) at(now time.Time, every time.Duration) State[T] {
	last := s.looked
	if s.begun.After(last) {
		last = s.begun
	}
	if age := now.Sub(last) - every; s.Failure == nil && s.Seen != nil && age > overdue {
		s.Failure, s.Since = fmt.Errorf("gormlock: inspect: no answer for %s", age.Round(time.Second)), last
	}
	return s
}

// run looks until nobody asks any more.
func (p *Poller[T]) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(p.ctx, lookTimeout)
		seen, err := p.look(ctx)
		cancel()
		if !p.keep(seen, err) {
			return
		}
		timer.Reset(max(p.every-time.Since(began), p.every/10))
	}
}

// keep stores the result of a look, and reports whether to go on.
func (p *Poller[T]) keep(seen T, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last.looked = time.Now()
	switch {
	case err == nil:
		p.last.Seen, p.last.Failure, p.last.Since = &seen, nil, time.Time{}
	case p.last.Failure == nil:
		p.last.Since = time.Now()
		fallthrough
	default:
		p.last.Failure = err
	}
	close(p.fresh)
	p.fresh = make(chan struct{})
	p.running = time.Since(p.asked) < unused
	return p.running
}
