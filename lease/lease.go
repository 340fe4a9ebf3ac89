package lease

import (
	"context"
	"errors"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

// Lease is a lease that was acquired. It is held until [Lease.Release], or until it is
// lost. Its methods may be called from several goroutines.
type Lease struct {
	m       *Manager
	key     lockkey.Key
	claim   claim
	ttl     time.Duration
	atLeast time.Duration
	renews  bool
	role    role
	slot    int
	since   holder.Instant // when it was requested
	state   state
}

// Key returns the key that was leased.
func (l *Lease) Key() lockkey.Key { return l.key }

// Token returns the fencing token of this acquisition: greater than those of all before
// it, smaller than those of all after it.
func (l *Lease) Token() fence.Token { return l.claim.token }

// Slot returns the number of the slot that is held, from 0 to n-1 for [Slots](n), and 0 for a whole key.
func (l *Lease) Slot() int { return l.slot }

// Until returns when the lease ends if it is not renewed, by the clock of this machine. It is counted from the moment at
// which the last statement was sent that acquired or renewed the lease: its length, less a fiftieth. The database does not
// grant it to anybody else before. To know whether the lease is held, call Err.
func (l *Lease) Until() time.Time {
	h := l.m.holdings
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(l.remains(h.clock()))
}

// Lost returns a channel that is closed when the lease is lost: when somebody else may
// hold it, at the latest when it runs out. It stays open when the lease is released.
func (l *Lease) Lost() <-chan struct{} {
	l.m.holdings.mu.Lock()
	defer l.m.holdings.mu.Unlock()
	if l.state.lost == nil {
		l.state.lost = make(chan struct{})
		if errors.Is(l.state.err, ErrLost) {
			close(l.state.lost)
		}
	}
	return l.state.lost
}

// Err returns nil while the lease is held, as far as this process can know, otherwise an
// error that is [ErrLost] or [ErrReleased]. It reads the clocks itself, so it reports a
// loss at once after the process was stopped or the machine slept.
func (l *Lease) Err() error {
	l.m.holdings.mu.Lock()
	tell, err := l.m.holdings.look(l)
	l.m.holdings.mu.Unlock()
	tell()
	return err
}

// Bind returns a context that ends when the lease does: with the cause [ErrLost], or
// [ErrReleased]. It carries the fencing token. An Acquire of the same key under it
// fails at once instead of waiting for itself. stop ends the context; the lease stays
// held.
func (l *Lease) Bind(ctx context.Context) (bound context.Context, stop func()) {
	ctx = fence.NewContext(ctx, l.claim.token)
	ctx = holder.Mark(ctx, l.m, l, keyOf(l.claim.place()))
	return l.state.bound.Bind(ctx, &l.m.holdings.mu, func() error { return l.state.err })
}

// Renew makes the lease run for its length again, from the sending of this call on. Only
// [NoRenewal] makes it necessary.
//
// ErrLost: the lease ran out, is somebody else's, or the answer came too late.
// [ErrReleased]: it was released. After any other error it ends when it would have
// ended before.
func (l *Lease) Renew(ctx context.Context) error {
	if err := l.Err(); err != nil {
		return err
	}
	for n := 0; ; n++ {
		locked, err := l.m.renewals.renew(ctx, []*Lease{l})
		switch {
		case l.Err() != nil:
			return l.Err()
		case isRetry(err) && n < 10:
			continue
		case err != nil:
			return l.unconfirmed(ctx, err, "renewal not confirmed")
		case locked == 0:
			return nil
		}
		l.m.background.pause(ctx, l.ttl/50) // somebody has the row locked
		if ctx.Err() != nil {
			return l.unconfirmed(ctx, ctx.Err(), "renewal not confirmed")
		}
	}
}

// Release releases the lease and returns when the database has confirmed it. With [AtLeast] it stays taken until that time
// has passed. Bound contexts end first. A release does not wait for the server's disk: if the server crashes within a
// second of it, the lease may be back, and then runs out.
//
// ErrLost: the lease was lost, before or during the call, so somebody else may have held
// it since; another holder's lease is not touched. [ErrReleased]: it was released
// before. After any other error, such as that of ctx, it is released as soon as the
// database can be reached, and in any case it runs out.
func (l *Lease) Release(ctx context.Context) error {
	m, h := l.m, l.m.holdings
	h.mu.Lock()
	tell, ended := h.look(l)
	if ended == nil {
		l.state.err = leaseError(l.key, ErrReleased, nil, "")
		h.end(l, l.state.err)
	}
	held := h.clock().Since(l.since)
	h.mu.Unlock()
	tell()
	back := item{l.claim, l.atLeast}
	if ended != nil {
		if errors.Is(ended, ErrLost) && !errors.Is(ended, ErrClosed) {
			m.unconfirmed.add(back, l.ttl) // a late renewal may have extended it in the table
		}
		return ended
	}
	asking, cancel := context.WithTimeout(ctx, withinOf(l.ttl)) // a silent network would block the call for ever
	defer cancel()
	there, err := m.giveBack(asking, back)
	err = unanswered(ctx, asking, withinOf(l.ttl), err)
	m.waiters.wake(l.claim.place())
	switch {
	case err != nil:
		m.unconfirmed.add(back, l.ttl)
		return l.unconfirmed(ctx, err, "release not confirmed")
	case !there:
		return l.lostAtRelease()
	case l.atLeast == 0:
		m.freed.add(l.claim.place())
	}
	if m.config.observer != nil {
		m.observe(ctx, observe.Event{Kind: observe.Released, Key: l.key.String(), Mode: "exclusive", Token: l.Token().Number, Held: held})
	}
	return nil
}

// unconfirmed is the error of a statement that failed. If ctx has ended, it is the error of ctx, without the cause of ctx: that can be the loss of
// another lease.
func (l *Lease) unconfirmed(ctx context.Context, err error, detail string) error {
	over := ended(ctx)
	if over == nil || errors.Is(err, over) {
		return leaseError(l.key, explain(err), nil, detail)
	}
	return leaseError(l.key, over, explain(err), detail)
}

// lostAtRelease marks the lease as lost because its release found no row.
func (l *Lease) lostAtRelease() error {
	l.m.holdings.mu.Lock()
	tell := l.m.holdings.lose(l, errGone)
	err := l.state.err
	l.m.holdings.mu.Unlock()
	tell()
	return err
}
