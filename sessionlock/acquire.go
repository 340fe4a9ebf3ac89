package sessionlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

// request is one acquisition.
type request struct {
	key     lockkey.Key
	id      lockID
	mode    mode
	try     bool
	fair    bool
	fenced  bool
	timeout time.Duration
}

func newRequest(key lockkey.Key, opts []AcquireOption) (request, error) {
	id, err := idOf(key)
	r := request{key: key, id: id}
	if err != nil || len(opts) == 0 {
		return r, err
	}
	return r.with(opts)
}

func idOf(key lockkey.Key) (lockID, error) {
	if id, ok := key.Int64(); ok {
		return lockID{false, id}, nil
	}
	if hi, lo, ok := key.Pair(); ok {
		return lockID{true, int64(hi)<<32 | int64(uint32(lo))}, nil
	}
	return lockID{}, key.Err()
}

// with is r with options. It is a function of its own so that a request without any
// stays off the heap.
func (r request) with(opts []AcquireOption) (request, error) {
	for _, o := range opts {
		if err := o.applyAcquire(&r); err != nil {
			return r, err
		}
	}
	if r.fenced && r.mode == shared {
		return r, fmt.Errorf("%w: Shared with Fenced: a token says who of two holders came later, shared holders hold together", ErrOption)
	}
	return r, nil
}

// Acquire takes the lock, waiting for it as long as ctx lets it. After an error the
// lock is not held, whatever the error: what the server may have granted meanwhile goes
// back. While there is no connection it waits for one.
//
// ErrLockTimeout: see [Timeout]. [ErrTooManyLocks], [ErrReentrant], [ErrClosed]: at
// once. Otherwise the error is that of ctx.
func (m *Manager) Acquire(ctx context.Context, key lockkey.Key, opts ...AcquireOption) (*Lock, error) {
	r, err := newRequest(key, opts)
	if err != nil {
		return nil, err
	}
	return m.take(ctx, &r)
}

// TryAcquire takes the lock if nobody holds it, else it answers [ErrNotAcquired]. It
// waits for no holder. While there is no connection it waits for the attempt to make
// one, and answers its error. After an error the lock is not held.
func (m *Manager) TryAcquire(ctx context.Context, key lockkey.Key, opts ...AcquireOption) (*Lock, error) {
	r, err := newRequest(key, opts)
	if err != nil {
		return nil, err
	}
	r.try = true
	return m.take(ctx, &r)
}

// Do runs fn while it holds the lock. The ctx of fn is that of [Lock.Bind]: it ends
// with the cause [ErrLost] when the lock is lost. Do returns the error of fn, and
// ErrLost whenever the lock was lost before it was given back, also when fn
// returned nil: what fn did after that may have met somebody else's work.
func (m *Manager) Do(ctx context.Context, key lockkey.Key, fn func(ctx context.Context) error, opts ...AcquireOption) (err error) {
	l, err := m.Acquire(ctx, key, opts...)
	if err != nil {
		return err
	}
	bound, stop := l.Bind(ctx)
	defer func() {
		stop()
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.patience())
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

func (m *Manager) take(ctx context.Context, r *request) (*Lock, error) {
	if err := ctx.Err(); err != nil {
		return nil, &lockError{key: r.key, state: err, cause: causeOf(ctx), detail: "not asked for"}
	}
	if m.holdsAlready(ctx, r.id) {
		return nil, &lockError{key: r.key, state: ErrReentrant}
	}
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.timeout, errTimeout)
		defer cancel()
	}
	var began time.Time
	if m.config.observer != nil {
		began = time.Now()
	}
	l, err := m.takeAndNumber(ctx, r)
	m.observeTaken(ctx, r, l, began, err)
	return l, err
}

// takeAndNumber takes the lock and its token. A lock that is lost before its token is
// there is taken again, unless it was only tried for: the token would be later than that
// of whoever holds the lock by then.
func (m *Manager) takeAndNumber(ctx context.Context, r *request) (*Lock, error) {
	for {
		l, err := m.takeOne(ctx, r)
		if err != nil || !r.fenced {
			return l, err
		}
		token, err := m.number(ctx, r)
		lost := l.Err()
		if err == nil && lost == nil {
			m.mu.Lock()
			l.token = &token
			m.unlock(nil)
			return l, nil
		}
		_ = Locks{l}.giveUp(ctx) // not to be used either way
		if lost == nil || r.try || ctx.Err() != nil || errors.Is(lost, ErrClosed) {
			return nil, cmp.Or(err, lost)
		}
	}
}

func (m *Manager) takeOne(ctx context.Context, r *request) (*Lock, error) {
	w := newWaiter(r)
	w.equip(m)
	w.deadline, _ = ctx.Deadline()
	m.takeLane(w)
	m.arrive(w)
	if err := m.await(ctx, w); err != nil {
		return nil, m.unanswered(ctx, r, err, &m.dialError)
	}
	l, err := w.lock, w.err
	w.reuse()
	return l, err
}

// unanswered is the error of a caller whose ctx ended first. Its cause is why there is no
// connection, else that of ctx.
func (m *Manager) unanswered(ctx context.Context, r *request, err error, dialError *error) error {
	out := &lockError{key: r.key, state: err, cause: causeOf(ctx), detail: "not acquired"}
	if errors.Is(out.cause, errTimeout) {
		out.state, out.cause, out.detail = ErrLockTimeout, nil, "after "+r.timeout.String()
	}
	m.mu.Lock()
	defer m.unlock(nil)
	if *dialError != nil {
		out.cause = fmt.Errorf("no connection: %w", *dialError)
	}
	return out
}

// causeOf is why ctx ended, nil where its error says it all.
func causeOf(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(ctx.Err(), cause) {
		return cause
	}
	return nil
}

func (m *Manager) observeTaken(ctx context.Context, r *request, l *Lock, began time.Time, err error) {
	if m.config.observer == nil {
		return
	}
	e := observe.Event{Key: r.key.String(), Mode: r.mode.String(), Wait: time.Since(began), Err: err}
	e.Space, e.ID = r.id.number()
	switch {
	case err == nil:
		e.Kind = observe.Acquired
		e.Token = l.Token().Number
		m.observe(ctx, e)
		l.observeLost(ctx)
		return
	case errors.Is(err, ErrNotAcquired):
		e.Kind = observe.NotAcquired
	case errors.Is(err, ErrLockTimeout) || ctx.Err() != nil:
		e.Kind = observe.TimedOut
	default:
		return // not a fact about the lock
	}
	m.observe(ctx, e)
}

func (m *Manager) observe(ctx context.Context, e observe.Event) {
	e.Source, e.Owner = "sessionlock", m.config.owner
	m.config.observer.Observe(ctx, e)
}
