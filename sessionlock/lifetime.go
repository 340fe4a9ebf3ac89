package sessionlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

var (
	// errUnconfirmed says that Close got no answer from a server.
	errUnconfirmed = errors.New("gormlock: close: not every session confirmed that it holds nothing")
	// errRunning says that Close did not wait for callers' code, which it cannot end.
	errRunning = errors.New("gormlock: close: a function of BeforeConnect, Observer or Listen has not returned")
)

// lastMoment is how long Close goes on after its time is over, for tasks that end at once.
const lastMoment = time.Second

// lifetime has the background tasks of a manager, and ends them. closed and unconfirmed belong to core.mu.
type lifetime struct {
	ctx    context.Context // of background tasks
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	closed      bool
	unconfirmed int           // sessions that were asked to unlock everything and have not answered
	confirmed   chan struct{} // closed when there are none of them
}

func newLifetime(ctx context.Context) *lifetime {
	l := &lifetime{confirmed: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return l
}

// run runs a task. Close waits for it.
func (l *lifetime) run(task func()) { l.tasks.Go(task) }

// during runs a task of a caller until it returns. The ctx of the task ends with that of the caller, or when the manager
// is closed; during returns the cause.
func (l *lifetime) during(ctx context.Context, mu sync.Locker, task func(ctx context.Context)) error {
	mu.Lock()
	if l.closed {
		mu.Unlock()
		return ErrClosed
	}
	l.tasks.Add(1)
	mu.Unlock()
	defer l.tasks.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(l.ctx, func() { cancel(ErrClosed) })
	defer stop()
	task(ctx)
	return context.Cause(ctx)
}

// pause waits for d, more or less, or until the manager is closed.
func (l *lifetime) pause(d time.Duration) {
	select {
	case <-l.ctx.Done():
	case <-time.After(holder.Jitter(d)):
	}
}

// askLast makes a session release what it holds.
func (l *lifetime) askLast(s *session) {
	s.lastUnlock = true
	s.command(wire.UnlockAll)
	l.unconfirmed++
}

// confirm is called when a session that was asked has answered or is dead.
func (l *lifetime) confirm(s *session) {
	s.lastUnlock = false
	l.unconfirmed--
	l.closeIfConfirmed()
}

func (l *lifetime) closeIfConfirmed() {
	if l.unconfirmed == 0 {
		close(l.confirmed)
	}
}

// awaitConfirmed returns when every session has confirmed that it holds nothing.
func (l *lifetime) awaitConfirmed(ctx context.Context) error {
	select {
	case <-l.confirmed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errUnconfirmed, context.Cause(ctx))
	}
}

// awaitEnd returns when no task of the manager runs any more. Tasks that wait for a network were told to end before. Callers' code may take its
// time.
func (l *lifetime) awaitEnd(ctx context.Context) error {
	over := make(chan struct{})
	go func() {
		l.tasks.Wait()
		close(over)
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-over:
		return nil
	case <-time.After(lastMoment):
		return errRunning
	}
}
