package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/lockkey"
)

// Acquire acquires the lease for ttl. It waits until ctx ends, even for a server that is
// down or fails over. After an error the lease is not held. If the server may have granted
// it nevertheless, it is released.
//
// A release in this process wakes waiters. With [Listen] a release in any process does;
// without it, they ask again soon. Waiters of one process are served in the order they
// came.
//
// [ErrLockTimeout]: see [Timeout]. [ErrReentrant], [ErrOption], [ErrClosed]: at once.
func (m *Manager) Acquire(ctx context.Context, key lockkey.Key, ttl time.Duration, opts ...AcquireOption) (*Lease, error) {
	return m.acquire(ctx, key, ttl, opts, false)
}

// TryAcquire acquires the lease if nobody holds it. Otherwise it returns [ErrNotAcquired],
// which says who holds it and for how long at least. After an error the lease is not held.
// If the server may have granted it nevertheless, it is released.
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

// releaseWithin bounds the wait for the confirmation of the release at the end of Do.
const releaseWithin = 5 * time.Second

var errNilFunction = fmt.Errorf("%w: a nil function, give one to run under the lease", ErrOption)

// Do runs fn while it holds the lease. The ctx of fn is that of [Lease.Bind]: it carries
// the fencing token, and ends with the cause [ErrLost] when the lease is lost. Do returns
// the error of fn. If the lease was lost before it was released, it returns ErrLost, even
// if fn returned nil: somebody else may have worked at the same time. With [Try], fn runs
// if nobody else holds the lease; otherwise Do returns [ErrNotAcquired].
func (m *Manager) Do(ctx context.Context, key lockkey.Key, ttl time.Duration, fn func(ctx context.Context) error, opts ...AcquireOption) error {
	if fn == nil {
		return errNilFunction
	}
	l, err := m.Acquire(ctx, key, ttl, opts...)
	if err != nil {
		return err
	}
	return holder.Do(ctx, l, releaseWithin, fn)
}

// giveBack releases one acquisition, together with others if possible, and reports whether it was still in the table.
func (m *Manager) giveBack(ctx context.Context, it item) (there bool, err error) {
	done, end, err := m.releases.do(ctx, &call{item: it})
	if done || err != nil {
		return done, err
	}
	defer end()
	return m.store.releaseOne(ctx, it)
}

// returnLate releases a lease that was granted after its caller had left.
func (m *Manager) returnLate(c *call) {
	if c.answer.granted() || c.err != nil && mayBeDone(c.sent, c.err) {
		m.unconfirmed.add(item{c.claim, 0}, c.span)
	}
}
