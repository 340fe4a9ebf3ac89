package lease

import (
	"context"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/lockkey"
)

// Acquire takes the lease for ttl, waiting for it as long as ctx lets it, also for a server
// that is down or fails over. After an error the lease is not held; where the server may
// have granted it all the same it is given back.
//
// Who waits is woken by a release: in this process, and with [Listen] in any other;
// without, it asks again soon. Waiters of one process stand in line in the order they came.
//
// [ErrLockTimeout]: see [Timeout]. [ErrReentrant], [ErrOption], [ErrClosed]: at once.
func (m *Manager) Acquire(ctx context.Context, key lockkey.Key, ttl time.Duration, opts ...AcquireOption) (*Lease, error) {
	return m.acquire(ctx, key, ttl, opts, false)
}

// TryAcquire takes the lease if nobody holds it, else it answers [ErrNotAcquired] and says
// who does and for how long at least. After an error the lease is not held; where the
// server may have granted it all the same it is given back.
func (m *Manager) TryAcquire(ctx context.Context, key lockkey.Key, ttl time.Duration, opts ...AcquireOption) (*Lease, error) {
	return m.acquire(ctx, key, ttl, opts, true)
}

func (m *Manager) acquire(ctx context.Context, key lockkey.Key, ttl time.Duration, opts []AcquireOption, try bool) (*Lease, error) {
	r, err := newRequest(m.store.table, key, ttl, opts)
	if err != nil {
		return nil, err
	}
	r.try = r.try || try
	return (&acquisition{m, r}).take(ctx)
}

// releaseWithin bounds the confirmation of a release that Do asks for.
const releaseWithin = 5 * time.Second

// Do runs fn while it holds the lease. The ctx of fn is that of [Lease.Bind]: it carries
// the fencing token, and ends with the cause [ErrLost] when the lease is lost. Do returns
// the error of fn, and ErrLost whenever the lease was lost before it was given back, also
// when fn returned nil: what fn did after that may have met somebody else's work. With
// [Try], fn runs if nobody else holds the lease, else Do answers [ErrNotAcquired].
func (m *Manager) Do(ctx context.Context, key lockkey.Key, ttl time.Duration, fn func(ctx context.Context) error, opts ...AcquireOption) error {
	l, err := m.Acquire(ctx, key, ttl, opts...)
	if err != nil {
		return err
	}
	return holder.Do(ctx, l, releaseWithin, fn)
}

// giveBack gives one acquisition back, in company where that is possible, and reports
// whether it was there.
func (m *Manager) giveBack(ctx context.Context, it item) (there bool, err error) {
	done, end, err := m.releases.do(ctx, &call{item: it})
	if done || err != nil {
		return done, err
	}
	defer end()
	found, err := m.store.release(ctx, []item{it})
	return len(found) > 0, err
}

// returnLate gives back what was granted to somebody who has left.
func (m *Manager) returnLate(c *call) {
	if c.answer.granted() || c.err != nil && mayBeDone(c.sent, c.err) {
		m.unconfirmed.add(item{c.claim, 0}, c.span)
	}
}
