package sessionlock

import (
	"context"
	"errors"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

// Lock is a lock that was acquired. It is held until [Lock.Release], or until it is
// lost. Its methods may be called from several goroutines.
type Lock struct {
	e     *entry        // while it is held; this and all up to told belong to m.mu
	next  *Lock         // in e.holder
	err   error         // why it is not held any more
	lost  chan struct{} // made by whoever asks first
	bound map[*binding]struct{}
	told  bool // the observer knows that it is held

	mode  mode
	s     *session
	m     *Manager
	key   lockkey.Key
	token *fence.Token // nil without Fenced
	since int64        // in nanoseconds, with an observer only
}

// Key returns the key that was locked.
func (l *Lock) Key() lockkey.Key { return l.key }

// Token returns the fencing token of this acquisition, zero without [Fenced].
func (l *Lock) Token() fence.Token {
	if l.token == nil {
		return fence.Token{}
	}
	return *l.token
}

// PID returns the process id of the server's backend that holds the lock, as in
// pg_locks.
func (l *Lock) PID() int { return l.s.pid }

// Lost returns a channel that is closed when the lock is lost: when somebody else may
// hold it. It stays open when the lock is released.
func (l *Lock) Lost() <-chan struct{} {
	l.m.mu.Lock()
	defer l.m.unlock(nil)
	if l.lost == nil {
		l.lost = make(chan struct{})
	}
	return l.lost
}

// Err returns nil while the lock is held as far as anybody here can know, else an error
// that is [ErrLost] or [ErrReleased]. It looks at the clocks itself: after the process
// was stopped or the machine slept it says so at once.
func (l *Lock) Err() error {
	m := l.m
	m.mu.Lock()
	defer m.unlock(nil)
	if l.err == nil && !m.proven(l.s, time.Now()) {
		m.loseSilent(l.s)
	}
	return l.ended()
}

// ended is why the lock is not held any more.
func (l *Lock) ended() error {
	if l.err == ErrReleased { //nolint:errorlint // the value itself, which most locks end with
		return &lockError{key: l.key, state: ErrReleased}
	}
	return l.err
}

// Release gives the lock back and returns when the server has confirmed it, or a
// waiter of this process has it. It never waits for other locks.
//
// ErrLost: the lock was lost, before or during the call, so somebody else may have
// held it since. [ErrReleased]: it was released before. When ctx ends first the error
// is that of ctx, and the lock is given back all the same.
func (l *Lock) Release(ctx context.Context) error {
	w := newReleaser(l)
	l.m.takeLane(w)
	l.m.arrive(w)
	err := l.endRelease(ctx, w)
	l.observeReleased(ctx, err)
	return err
}

func (l *Lock) endRelease(ctx context.Context, w *waiter) error {
	if err := l.m.await(ctx, w); err != nil {
		return &lockError{key: l.key, state: err, detail: "release not confirmed"}
	}
	err := w.err
	w.reuse()
	return err
}

// startRelease lets in a waiter that gives a lock back.
func (m *Manager) startRelease(w *waiter) {
	l := w.gives
	if l.err == nil && l.e.queue.first != nil && !m.proven(l.s, time.Now()) {
		m.loseSilent(l.s) // else the next could be given what the server gave to somebody else
	}
	if l.err != nil {
		m.settle(w, l.ended())
		return
	}
	l.err = ErrReleased
	w.e = l.e
	if l.bound != nil {
		l.unbind(l.ended())
	}
	m.release(l, w)
}

// observeReleased tells of the end of a lock by Release: given back, also where the
// server did not confirm it in time, or lost on the way. A loss before that was told of
// when it was seen, and a lock ends once.
func (l *Lock) observeReleased(ctx context.Context, err error) {
	if l.m.config.observer == nil || errors.Is(err, ErrReleased) {
		return
	}
	kind := observe.Released
	if errors.Is(err, ErrLost) {
		if !l.wasReleased() {
			return
		}
		kind = observe.Lost
	}
	l.m.observe(ctx, l.event(kind, err))
}

// observeLost tells of a loss that was seen before the observer knew the lock. Later ones
// are told of when they are seen: an observer hears of the end of each lock that it
// heard of, once.
func (l *Lock) observeLost(ctx context.Context) {
	l.m.mu.Lock()
	l.told = true
	lost := l.err
	l.m.unlock(nil)
	if lost != nil {
		l.m.observe(ctx, l.event(observe.Lost, lost))
	}
}

func (l *Lock) wasReleased() bool {
	l.m.mu.Lock()
	defer l.m.unlock(nil)
	return l.err == ErrReleased //nolint:errorlint // the value itself, which most locks end with
}

// event is one of the end of l, with an observer.
func (l *Lock) event(kind observe.Kind, err error) observe.Event {
	return observe.Event{
		Kind: kind, Key: l.key.String(), Mode: l.mode.String(), Token: l.Token().Number,
		Held: time.Since(time.Unix(0, l.since)), Err: err,
	}
}

// binding is a context that ends with a lock.
type binding struct{ cancel context.CancelCauseFunc }

// Bind returns a context that ends when the lock does: with the cause [ErrLost], or
// [ErrReleased]. It carries the fencing token, and makes an Acquire of the same key
// under it fail at once instead of waiting for itself. stop ends the context; the lock
// stays as it is.
func (l *Lock) Bind(ctx context.Context) (bound context.Context, stop func()) {
	if l.token != nil {
		ctx = fence.NewContext(ctx, *l.token)
	}
	id, _ := idOf(l.key)
	ctx = context.WithValue(ctx, holdsKey{}, &holds{l, id, holdsOf(ctx)})
	ctx, cancel := context.WithCancelCause(ctx)
	b := &binding{cancel}
	l.m.mu.Lock()
	defer l.m.unlock(nil)
	if l.err != nil {
		cancel(l.ended())
		return ctx, func() {}
	}
	if l.bound == nil {
		l.bound = map[*binding]struct{}{}
	}
	l.bound[b] = struct{}{}
	return ctx, func() {
		l.m.mu.Lock()
		delete(l.bound, b)
		l.m.unlock(nil)
		cancel(nil)
	}
}

// unbind ends the contexts of a lock. It is called with mu held, so that they have ended
// before anybody can be granted the key; to cancel runs nobody else's code.
func (l *Lock) unbind(cause error) {
	for b := range l.bound {
		b.cancel(cause)
	}
	l.bound = nil
}

// holds is a list of the locks whose holder a context belongs to.
type holds struct {
	lock  *Lock
	id    lockID
	outer *holds
}

type holdsKey struct{}

func holdsOf(ctx context.Context) *holds {
	h, _ := ctx.Value(holdsKey{}).(*holds)
	return h
}

// holdsAlready reports whether ctx belongs to a holder of the key. A lock that has ended
// is in nobody's way.
func (m *Manager) holdsAlready(ctx context.Context, id lockID) bool {
	for h := holdsOf(ctx); h != nil; h = h.outer {
		if h.lock.m == m && h.id == id && h.lock.Err() == nil {
			return true
		}
	}
	return false
}
