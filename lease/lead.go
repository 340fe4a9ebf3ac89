package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/lockkey"
)

// Lead runs fn in one process at a time: it campaigns until it holds the lease, calls fn, and campaigns again if the
// lease was lost. The ctx of fn is that of [Lease.Bind]: it carries the fencing token of this term, and ends with the
// cause [ErrLost] when the term does. fn must return then: until it has, this process does not campaign.
//
// If fn returns while the lease is held, Lead releases the lease and returns the error of fn, or nil. When ctx ends,
// Lead waits for fn, releases the lease, and returns the error of ctx. If the manager is closed it returns [ErrClosed].
// After a panic of fn it releases the lease and panics on.
//
// With [Try], a campaign that finds the lease taken ends with [ErrNotAcquired], whether it is the first or follows a
// loss.
//
// A leader that was stopped may go on for a moment after its successor began. Only the guard of its token (see package
// fence) refuses what it writes then.
func (m *Manager) Lead(ctx context.Context, key lockkey.Key, ttl time.Duration, fn func(ctx context.Context) error, opts ...AcquireOption) error {
	if fn == nil {
		return errNilFunction
	}
	for {
		l, err := m.Acquire(ctx, key, ttl, append(opts[:len(opts):len(opts)], as(leader))...)
		if err != nil {
			return err
		}
		lost, err := m.term(ctx, l, fn)
		switch {
		case ctx.Err() != nil && (err == nil || lost || errors.Is(err, ctx.Err())):
			return cause.Add(ctx, ctx.Err())
		case ctx.Err() != nil:
			return fmt.Errorf("%w; %w", cause.Add(ctx, ctx.Err()), err)
		case !lost:
			return err
		case m.holdings.isClosed():
			return leaseError(key, ErrClosed, nil, "")
		}
		m.background.pause(ctx, firstPoll)
	}
}

// term runs fn while l is held, and reports whether l was lost before it was given back.
func (m *Manager) term(ctx context.Context, l *Lease, fn func(ctx context.Context) error) (lost bool, err error) {
	err = holder.Do(ctx, l, releaseWithin, fn)
	return errors.Is(l.Err(), ErrLost), err
}

// Leading reports whether a call of [Manager.Lead] of this manager leads now, as far as its clocks can know.
// That can change at once: do in fn, with its ctx, what two processes must not do.
func (m *Manager) Leading(key lockkey.Key) bool {
	at, err := holder.PlaceOf(key)
	if err != nil {
		return false
	}
	m.holdings.mu.Lock()
	l := m.holdings.held[at]
	m.holdings.mu.Unlock()
	return l != nil && l.role == leader && l.Err() == nil
}
