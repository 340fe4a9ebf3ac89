package lease

import (
	"context"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
)

// background runs the goroutines of a manager until it is closed, and calls a function whenever something is due.
type background struct {
	ctx    context.Context // ends at close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	woken  chan struct{}
	over   chan struct{} // closed when the manager has released what it held

	mu     sync.Mutex
	closed bool
	dueAt  time.Duration // the time of the next look, on the monotonic clock
}

func newBackground(ctx context.Context) *background {
	b := &background{woken: make(chan struct{}, 1), over: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return b
}

// start runs f in a goroutine. After close it does nothing.
func (b *background) start(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.wg.Go(f)
	}
}

// close ends the context of all goroutines. It does not wait for them: see wait.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
}

// wait returns when no goroutine runs any more.
func (b *background) wait() { b.wg.Wait() }

// wakeBy makes watch look at the given time at the latest.
func (b *background) wakeBy(at time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at < b.dueAt {
		b.dueAt = at
		select {
		case b.woken <- struct{}{}:
		default:
		}
	}
}

// idle is how long watch sleeps if nothing is due.
const idle = time.Hour

// watch calls look at once, then again at the time that look returned or that [background.wakeBy] gave, and not before: a lease that is released at
// once must not wake it each time.
func (b *background) watch(clock holder.Clock, look func(now holder.Instant) (due time.Duration)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.woken:
		case <-timer.C:
		}
		now := clock()
		b.mu.Lock()
		isDue := b.dueAt <= now.Mono
		if isDue {
			b.dueAt = now.Mono + idle
		}
		b.mu.Unlock()
		due := now.Mono + idle
		if isDue {
			due = look(now)
		}
		b.mu.Lock()
		b.dueAt = min(b.dueAt, due)
		wait := b.dueAt - now.Mono
		b.mu.Unlock()
		timer.Reset(max(wait, time.Millisecond))
	}
}

// pause waits for d, or until ctx or the manager ends.
func (b *background) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(holder.Jitter(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-b.ctx.Done():
	}
}
