package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

// request is one acquisition that is asked for.
type request struct {
	key       lockkey.Key
	token     fence.Token // without a number
	row       string      // in ShedLock's table
	ttl       time.Duration
	atLeast   time.Duration
	timeout   time.Duration
	data      []byte
	noRenewal bool
	try       bool
}

func (m *Manager) newRequest(key lockkey.Key, ttl time.Duration, opts []AcquireOption) (*request, error) {
	token, err := fence.For(key, 0)
	if err != nil {
		return nil, err
	}
	r := &request{key: key, token: token, ttl: ttl}
	for _, o := range opts {
		if err := o.applyAcquire(r); err != nil {
			return nil, err
		}
	}
	if n := len(key.Name()); n > maxName {
		return nil, fmt.Errorf("%w: the name %s has %d bytes, more than %d", ErrOption, key, n, maxName)
	}
	if m.config.shedlock {
		r.row = shedlockName(key)
		if r.row == "" {
			return nil, fmt.Errorf("%w: %s has no name, and ShedLock's table knows locks by name: lockkey.Of, or Named", ErrOption, key)
		}
		if n := utf8.RuneCountInString(r.row); m.room > 0 && n > m.room {
			return nil, fmt.Errorf("%w: the name %s has %d characters, the table has room for %d", ErrOption, key, n, m.room)
		}
	}
	return r, m.config.checkRequest(r)
}

// Acquire takes the lease for ttl, waiting for it as long as ctx lets it, also for a server
// that is down or fails over. After an error the lease is not held; where the server may
// have granted it all the same it is given back.
//
// Who waits is woken by a release: in this process, and with [Listen] in any other;
// without, it asks again soon. Waiters of one process stand in line in the order they came.
//
// [ErrLockTimeout]: see [Timeout]. [ErrReentrant], [ErrOption], [ErrClosed]: at once.
func (m *Manager) Acquire(ctx context.Context, key lockkey.Key, ttl time.Duration, opts ...AcquireOption) (*Lease, error) {
	return m.take(ctx, key, ttl, false, opts)
}

// TryAcquire takes the lease if nobody holds it, else it answers [ErrNotAcquired] and says
// who does and for how long at least. After an error the lease is not held; where the
// server may have granted it all the same it is given back.
func (m *Manager) TryAcquire(ctx context.Context, key lockkey.Key, ttl time.Duration, opts ...AcquireOption) (*Lease, error) {
	return m.take(ctx, key, ttl, true, opts)
}

// releaseWithin bounds the confirmation of a release that Do asks for.
const releaseWithin = 5 * time.Second

// Do runs fn while it holds the lease. The ctx of fn is that of [Lease.Bind]: it carries
// the fencing token, and ends with the cause [ErrLost] when the lease is lost. Do returns
// the error of fn, and ErrLost whenever the lease was lost before it was given back, also
// when fn returned nil: what fn did after that may have met somebody else's work.
func (m *Manager) Do(ctx context.Context, key lockkey.Key, ttl time.Duration, fn func(ctx context.Context) error, opts ...AcquireOption) (err error) {
	l, err := m.Acquire(ctx, key, ttl, opts...)
	if err != nil {
		return err
	}
	bound, stop := l.Bind(ctx)
	defer func() {
		stop()
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
		defer cancel()
		switch released := l.Release(detached); {
		case err == nil:
			err = released
		case released != nil:
			err = fmt.Errorf("%w; %w", released, err)
		}
	}()
	return fn(bound)
}

// errTimeout is the cause of a context that ended by Timeout.
var errTimeout = errors.New("gormlock: timeout")

func (m *Manager) take(ctx context.Context, key lockkey.Key, ttl time.Duration, try bool, opts []AcquireOption) (*Lease, error) {
	r, err := m.newRequest(key, ttl, opts)
	if err != nil {
		return nil, err
	}
	r.try = try
	if err := ctx.Err(); err != nil {
		return nil, &leaseError{key: key, state: err, detail: "not asked for"}
	}
	if m.holdsAlready(ctx, placeOf(r.token)) {
		return nil, &leaseError{key: key, state: ErrReentrant}
	}
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.timeout, errTimeout)
		defer cancel()
	}
	began := time.Now()
	var l *Lease
	if try {
		l, err = m.takeNow(ctx, r)
	} else {
		l, err = m.takeInTurn(ctx, r)
	}
	m.observeTaken(ctx, r, l, began, err)
	return l, err
}

// takeNow asks until there is an answer; what is asked again is over in a moment.
func (m *Manager) takeNow(ctx context.Context, r *request) (*Lease, error) {
	for n := 0; ; n++ {
		l, ref, err := m.ask(ctx, r, false)
		switch {
		case err == nil && l != nil:
			return l, nil
		case err == nil && ref.owner != nil:
			return nil, &leaseError{key: r.key, state: ErrNotAcquired, detail: ref.String()}
		case err == nil && n < 3, isRetry(err) && n < 10:
			continue
		case err == nil:
			return nil, &leaseError{key: r.key, state: ErrNotAcquired, detail: "others were faster, or the answer came too late"}
		}
		return nil, m.gaveUp(ctx, r, nil, err)
	}
}

// isRetry reports whether err says that a transaction met another.
func isRetry(err error) bool { return sqlState(err) == "40001" || sqlState(err) == "40P01" }

// takeInTurn waits to be the first in line, then asks until it gets the lease.
func (m *Manager) takeInTurn(ctx context.Context, r *request) (*Lease, error) {
	at := placeOf(r.token)
	w := m.join(at)
	defer m.leave(at, w)
	select {
	case <-w.first:
	case <-m.ctx.Done():
		return nil, &leaseError{key: r.key, state: ErrClosed}
	case <-ctx.Done():
		return nil, m.gaveUp(ctx, r, nil, ctx.Err())
	}
	var last error
	for n := 0; ; n++ {
		l, ref, err := m.ask(ctx, r, n > 0)
		switch {
		case err == nil && l != nil:
			return l, nil
		case err == nil && n == 0 && m.hears():
			continue // and says this time that it waits
		case err != nil && (ended(ctx) != nil || !passes(err)):
			return nil, m.gaveUp(ctx, r, last, err)
		case err != nil:
			last, ref = err, &refusal{}
		}
		if err := m.await(ctx, w, n, ref); err != nil {
			return nil, m.gaveUp(ctx, r, last, err)
		}
	}
}

// ended is the error of ctx. A connection's deadline may pass a moment before ctx knows.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	return ctx.Err()
}

// gaveUp is the error of a request that was not granted.
func (m *Manager) gaveUp(ctx context.Context, r *request, last, err error) error {
	over := ended(ctx)
	out := &leaseError{key: r.key, state: explain(err), cause: last, detail: "not acquired"}
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		out.state, out.detail = ErrLockTimeout, "after "+r.timeout.String()
	case over != nil:
		out.state = over
	case errors.Is(err, ErrClosed):
		out.detail = ""
	}
	return out
}

func (m *Manager) observeTaken(ctx context.Context, r *request, l *Lease, began time.Time, err error) {
	if m.config.observer == nil {
		return
	}
	e := observe.Event{Key: r.key.String(), Mode: "exclusive", Wait: time.Since(began), Err: err}
	switch {
	case err == nil:
		e.Kind = observe.Acquired
		e.Token = l.Token().Number
	case errors.Is(err, ErrNotAcquired):
		e.Kind = observe.NotAcquired
	case errors.Is(err, ErrLockTimeout) || ctx.Err() != nil:
		e.Kind = observe.TimedOut
	default:
		return // not a fact about the lease
	}
	m.observe(ctx, e)
}
