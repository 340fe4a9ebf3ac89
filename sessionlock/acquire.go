package sessionlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// request is one acquisition.
type request struct {
	wanted
	key     lockkey.Key
	fenced  bool
	timeout time.Duration
}

// wanted is the part of an acquisition that the ledger needs.
type wanted struct {
	id   holder.Place
	mode wire.Mode
	try  bool
	fair bool
}

func newRequest(key lockkey.Key, opts []AcquireOption) (request, error) {
	if _, renamed := key.Former(); renamed {
		return request{}, fmt.Errorf("%w: %s stands for two locks, and a Lock is one: Do and AcquireAll take both", ErrOption, key)
	}
	id, err := holder.PlaceOf(key)
	r := request{wanted: wanted{id: id}, key: key}
	if err != nil || len(opts) == 0 {
		return r, err
	}
	return r.with(opts)
}

// with returns r with options. It is a function of its own, so a request without options stays off the heap.
func (r request) with(opts []AcquireOption) (request, error) {
	if err := holder.Apply("Acquire", opts, &r, AcquireOption.applyAcquire); err != nil {
		return r, err
	}
	if r.fenced && r.mode == wire.Shared {
		return r, fmt.Errorf("%w: Shared with Fenced: tokens put holders in an order, and shared holders hold at the same time", ErrOption)
	}
	return r, nil
}

// Acquire acquires the lock. It waits until ctx ends, even for a connection. After an
// error the lock is not held, whatever the error: what the server may have granted is
// released.
//
// ErrLockTimeout: see [Timeout]. [ErrTooManyLocks], [ErrReentrant], [ErrClosed]: at
// once. A [lockkey.Renamed] key is [ErrOption]: Do and AcquireAll take both of its locks.
// Otherwise the error is that of ctx.
func (m *Manager) Acquire(ctx context.Context, key lockkey.Key, opts ...AcquireOption) (*Lock, error) {
	r, err := newRequest(key, opts)
	if err != nil {
		return nil, err
	}
	return m.take(ctx, &r)
}

// TryAcquire acquires the lock if nobody holds it. Otherwise it returns
// [ErrNotAcquired]. It never waits for a holder. If there is no connection it waits
// for one attempt to connect, and returns its error. After an error the lock is not
// held.
func (m *Manager) TryAcquire(ctx context.Context, key lockkey.Key, opts ...AcquireOption) (*Lock, error) {
	r, err := newRequest(key, opts)
	if err != nil {
		return nil, err
	}
	r.try = true
	return m.take(ctx, &r)
}

// Do runs fn while it holds the lock. The ctx of fn is that of [Lock.Bind]: it ends with
// the cause [ErrLost] when the lock is lost. Do returns the error of fn. If the lock was
// lost before it was released, it returns ErrLost, even if fn returned nil: somebody
// else may have worked at the same time. With [Try], fn runs if nobody holds the lock;
// otherwise Do returns [ErrNotAcquired].
//
// It acquires both locks of a [lockkey.Renamed] key. Such a key cannot be [Fenced]: the
// token of one lock says nothing about the holders of the other.
func (m *Manager) Do(ctx context.Context, key lockkey.Key, fn func(ctx context.Context) error, opts ...AcquireOption) (err error) {
	if fn == nil {
		return fmt.Errorf("%w: Do with a nil function, give one to run under the lock", ErrOption)
	}
	if _, renamed := key.Former(); renamed {
		return m.doBoth(ctx, key, fn, opts)
	}
	l, err := m.Acquire(ctx, key, opts...)
	if err != nil {
		return err
	}
	return holder.Do(ctx, l, m.dialer.Silence(), fn)
}

// doBoth runs fn while it holds both locks of a renamed key, the second taken inside of the first. Timeout limits both
// together.
func (m *Manager) doBoth(ctx context.Context, key lockkey.Key, fn func(ctx context.Context) error, opts []AcquireOption) error {
	var pair [2]request
	for i, k := range key.Keys() {
		var err error
		if pair[i], err = newRequest(k, opts); err != nil {
			return err
		}
	}
	if pair[0].fenced {
		return fmt.Errorf("%w: Fenced: %s stands for two locks, and a token belongs to one: see lockkey.Renamed", ErrOption, key)
	}
	began := time.Now()
	outer, err := m.take(ctx, &pair[0])
	if err != nil {
		return err
	}
	return holder.Do(ctx, outer, m.dialer.Silence(), func(ctx context.Context) error {
		within, cancel := ctx, func() {}
		if budget := pair[1].timeout; budget > 0 {
			within, cancel = holder.WithTimeout(ctx, max(budget-time.Since(began), time.Nanosecond))
		}
		inner, err := m.take(within, &pair[1])
		cancel()
		if err != nil {
			return err
		}
		return holder.Do(ctx, inner, m.dialer.Silence(), fn)
	})
}

func (m *Manager) take(ctx context.Context, r *request) (*Lock, error) {
	switch err := ctx.Err(); {
	case holder.TimedOut(ctx):
		return nil, lockError(r.key, ErrLockTimeout, nil, "after "+r.timeout.String())
	case err != nil:
		return nil, lockError(r.key, err, causeOf(ctx), "not asked for")
	}
	if holder.Holds(ctx, m, r.id) {
		return nil, lockError(r.key, ErrReentrant, nil, "")
	}
	ctx, cancel := holder.WithTimeout(ctx, r.timeout)
	defer cancel()
	var began time.Time
	if m.reporter.isOn() {
		began = time.Now()
	}
	l, err := m.takeWithToken(ctx, r)
	m.reporter.acquired(ctx, r, l, began, err)
	return l, err
}

// takeWithToken takes the lock and its token. If the lock is lost before its token is issued, it takes the lock again. A
// call that only tries does not: the token would be later than that of the next holder.
func (m *Manager) takeWithToken(ctx context.Context, r *request) (*Lock, error) {
	for {
		l, err := m.takeOne(ctx, r)
		if err != nil || !r.fenced {
			return l, err
		}
		token, err := m.issueToken(ctx, r)
		lost := l.Err()
		if err == nil && lost == nil {
			m.core.Lock()
			l.token = &token
			m.core.Unlock()
			return l, nil
		}
		_ = Locks{l}.discard(ctx) // whether this releases the lock or finds it lost, the lock is not used
		if err == nil && ctx.Err() != nil && !errors.Is(lost, ErrClosed) {
			return nil, m.unanswered(ctx, r, ctx.Err(), &m.core.conns.dialError)
		}
		if lost == nil || r.try || ctx.Err() != nil || errors.Is(lost, ErrClosed) {
			return nil, cmp.Or(err, lost)
		}
	}
}

func (m *Manager) takeOne(ctx context.Context, r *request) (*Lock, error) {
	w := newWaiter(r)
	w.equip(m)
	if deadline, ok := ctx.Deadline(); ok {
		w.deadline = holder.At(deadline)
	}
	if err := m.core.submit(ctx, w); err != nil {
		return nil, m.unanswered(ctx, r, err, &m.core.conns.dialError)
	}
	l, err := w.lock, w.err
	w.reuse()
	return l, err
}

// issueToken issues the token of a lock that is held. When it returns, the token is durable.
func (m *Manager) issueToken(ctx context.Context, r *request) (fence.Token, error) {
	token, err := fence.For(r.key, 0)
	if err != nil {
		return fence.Token{}, err
	}
	w := newWaiter(r)
	t := &tokenRequest{w: w, id: r.id, token: token}
	w.token = t
	if err := m.core.submit(ctx, w); err != nil {
		return fence.Token{}, m.unanswered(ctx, r, err, &m.core.issuer.dialError)
	}
	err = w.err
	w.reuse()
	t.token.Number = t.number
	return t.token, err
}

// unanswered is the error of a caller whose ctx ended before its answer. Its cause says why there is no connection; if
// there is one, it is that of ctx.
func (m *Manager) unanswered(ctx context.Context, r *request, err error, dialError *error) error {
	state, cause, detail := err, causeOf(ctx), "not acquired"
	if holder.TimedOut(ctx) {
		state, cause, detail = ErrLockTimeout, nil, "after "+r.timeout.String()
	}
	m.core.Lock()
	defer m.core.Unlock()
	if *dialError != nil {
		cause = fmt.Errorf("no connection: %w", *dialError)
	}
	return lockError(r.key, state, cause, detail)
}

// causeOf returns why ctx ended, or nil if its error says everything.
func causeOf(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(ctx.Err(), cause) {
		return cause
	}
	return nil
}
