package sessionlock

import (
	"context"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// Lock is a lock that was acquired. It is held until [Lock.Release], or until it is
// lost. Its methods may be called from several goroutines.
type Lock struct {
	entry    *entry // while it is held; the fields from here to reported belong to core.mu
	next     *Lock  // in entry.holders
	end      lockEnd
	reported bool // the observer knows that it was acquired

	mode    wire.Mode
	session *session
	m       *Manager
	key     lockkey.Key
	token   *fence.Token // nil without Fenced
	since   int64        // in nanoseconds; only set with an observer
}

// lockEnd is how a lock ends.
type lockEnd struct {
	err      error         // why it is not held any more
	lost     chan struct{} // made by the first call of Lost
	contexts holder.Contexts
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
func (l *Lock) PID() int { return l.session.server.PID }

// Lost returns a channel that is closed when the lock is lost: when somebody else may
// hold it. It stays open when the lock is released.
func (l *Lock) Lost() <-chan struct{} {
	c := l.m.core
	c.Lock()
	defer c.Unlock()
	if l.end.lost == nil {
		l.end.lost = make(chan struct{})
	}
	return l.end.lost
}

// Err returns nil while the lock is held, as far as this process can know, otherwise an
// error that is [ErrLost] or [ErrReleased]. It reads the clocks itself, so it reports a
// loss at once after the process was stopped or the machine slept.
func (l *Lock) Err() error {
	c := l.m.core
	c.Lock()
	defer c.Unlock()
	if l.end.err == nil {
		c.conns.checkAlive(l.session, time.Now())
	}
	return l.ended()
}

// ended returns why the lock is no longer held.
func (l *Lock) ended() error {
	if l.end.err == ErrReleased { //nolint:errorlint // the value itself, which most locks end with
		return lockError(l.key, ErrReleased, nil, "")
	}
	return l.end.err
}

// Release releases the lock and returns when the server has confirmed it, or a
// waiter of this process has it. It never waits for other locks.
//
// ErrLost: the lock was lost, before or during the call, so somebody else may have
// held it since. [ErrReleased]: it was released before. If ctx ends first the error
// is that of ctx, and the lock is released nevertheless.
func (l *Lock) Release(ctx context.Context) error {
	w := newReleaser(l)
	err := l.releaseError(w, l.m.core.submit(ctx, w))
	l.m.reporter.released(ctx, l, err)
	return err
}

// Bind returns a context that ends when the lock does: with the cause [ErrLost], or
// [ErrReleased]. It carries the fencing token. An Acquire of the same key under it
// fails at once instead of waiting for itself. stop ends the context; the lock stays
// held.
func (l *Lock) Bind(ctx context.Context) (bound context.Context, stop func()) {
	if l.token != nil {
		ctx = fence.NewContext(ctx, *l.token)
	}
	at, _ := holder.PlaceOf(l.key)
	ctx = holder.Mark(ctx, l.m, l, at)
	return l.end.contexts.Bind(ctx, l.m.core, l.ended)
}

// releaseError is the error of Release. unanswered says why it did not wait for the answer.
func (l *Lock) releaseError(w *waiter, unanswered error) error {
	if unanswered != nil {
		return lockError(l.key, unanswered, nil, "release not confirmed")
	}
	err := w.err
	w.reuse()
	return err
}

// lostError says that the server may have freed l at any time since the last proof that the session lives.
func (l *Lock) lostError(cause error, detail string) error {
	return &holder.Error{Thing: "lock", Key: l.key, State: ErrLost, Cause: cause, Detail: detail, Proven: l.session.provenAt}
}

// markReleased notes that the holder releases l.
func (l *Lock) markReleased() {
	l.end.err = ErrReleased
	if !l.end.contexts.IsEmpty() {
		l.end.contexts.End(l.ended())
	}
}

// lose tells the holder that another process may have the lock.
func (l *Lock) lose(err error) {
	l.end.err = err
	if l.end.lost == nil {
		l.end.lost = make(chan struct{})
	}
	close(l.end.lost)
	l.end.contexts.End(err)
}

// report notes that the observer knows of l, and returns an error if l is already lost. Later losses are reported when
// they are seen. So an observer hears once of the end of each lock of which it heard.
func (l *Lock) report() (lost error) {
	l.m.core.Lock()
	defer l.m.core.Unlock()
	l.reported = true
	return l.end.err
}

// wasReleased reports whether l ended because its holder released it.
func (l *Lock) wasReleased() bool {
	l.m.core.Lock()
	defer l.m.core.Unlock()
	return l.end.err == ErrReleased //nolint:errorlint // the value itself, which most locks end with
}

// event returns the event for the end of l. There must be an observer.
func (l *Lock) event(kind observe.Kind, err error) observe.Event {
	return observe.Event{
		Kind: kind, Key: l.key.String(), Mode: l.mode.String(), Token: l.Token().Number,
		Held: time.Since(time.Unix(0, l.since)), Err: err,
	}
}
