package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/fence"
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
	since   instant // when it was asked for

	// Belong to m.mu.
	proof    instant       // when the last statement that was answered in time was sent
	renewAt  time.Duration // on the monotonic clock
	renewing bool          // a statement of the tender is on its way
	timer    *time.Timer   // for when it runs out
	err      error         // why it is not held any more
	lost     chan struct{} // made by whoever asks first
	bound    map[*binding]struct{}
}

// Key returns the key that was leased.
func (l *Lease) Key() lockkey.Key { return l.key }

// Token returns the fencing token of this acquisition: greater than those of all before
// it, smaller than those of all after it.
func (l *Lease) Token() fence.Token { return l.claim.token }

func (l *Lease) place() place { return placeOf(l.claim.token) }

// remains is for how long the lease is still believed in.
func (l *Lease) remains(now instant) time.Duration { return believed(l.ttl) - now.since(l.proof) }

func (l *Lease) ranOut(now instant) bool { return l.remains(now) <= 0 }

// Until returns until when the lease is held if it is not renewed, by the clock of this
// machine: its length after the sending of the last statement that was answered in time,
// less a fiftieth. The database lets nobody else have it before. A time that has passed
// says nothing about whether it is held: see Err.
func (l *Lease) Until() time.Time {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	return time.Now().Add(l.remains(l.m.config.clock()))
}

// Lost returns a channel that is closed when the lease is lost: when somebody else may
// hold it, at the latest when it runs out. It stays open when the lease is released.
func (l *Lease) Lost() <-chan struct{} {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.lost == nil {
		l.lost = make(chan struct{})
		if errors.Is(l.err, ErrLost) {
			close(l.lost)
		}
	}
	return l.lost
}

// Err returns nil while the lease is held as far as anybody here can know, else an error
// that is [ErrLost] or [ErrReleased]. It looks at the clocks itself: after the process was
// stopped or the machine slept it says so at once.
func (l *Lease) Err() error {
	l.m.mu.Lock()
	tell := l.look()
	err := l.err
	l.m.mu.Unlock()
	tell()
	return err
}

// look loses the lease if it ran out. It is called with mu held; what it returns is
// called without.
func (l *Lease) look() (tell func()) {
	if l.err == nil && l.ranOut(l.m.config.clock()) {
		return l.m.lose(l, l.whyRanOut())
	}
	return func() {}
}

var (
	// errTaken says that somebody else was granted the lease.
	errTaken = errors.New("somebody else has it")
	// errGone says that the row is another acquisition's, or not there.
	errGone = errors.New("the database says that it ran out or is somebody else's")
)

func (l *Lease) whyRanOut() error {
	if l.renews {
		return fmt.Errorf("no renewal was confirmed for %s", believed(l.ttl))
	}
	return fmt.Errorf("it ran out after %s", believed(l.ttl))
}

// runOut is called by the timer.
func (l *Lease) runOut() {
	l.m.mu.Lock()
	tell := l.look()
	if l.err == nil { // it was renewed meanwhile
		l.timer.Reset(l.remains(l.m.config.clock()))
	}
	l.m.mu.Unlock()
	tell()
}

// Renew makes the lease run for its length again, from the sending of this call on. Only
// [NoRenewal] makes it necessary.
//
// ErrLost: the lease ran out or is somebody else's, also when the answer came too late.
// [ErrReleased]: it was released. After any other error it runs as long as it did.
func (l *Lease) Renew(ctx context.Context) error {
	if err := l.Err(); err != nil {
		return err
	}
	for n := 0; ; n++ {
		left, err := l.m.renewAll(ctx, []*Lease{l})
		switch {
		case l.Err() != nil:
			return l.Err()
		case isRetry(err) && n < 10:
			continue
		case err != nil:
			return &leaseError{key: l.key, state: explain(err), detail: "renewal not confirmed"}
		case left == 0:
			return nil
		}
		l.m.pause(ctx, l.ttl/50) // somebody has the row locked
		if ctx.Err() != nil {
			return &leaseError{key: l.key, state: ctx.Err(), detail: "renewal not confirmed"}
		}
	}
}

// Release gives the lease back and returns when the database has confirmed it. With
// [AtLeast] it stays taken until then. Bound contexts end first.
//
// ErrLost: the lease was lost, before or during the call, so somebody else may have held
// it since; what is somebody else's is left as it is. [ErrReleased]: it was released
// before. After any other error, such as that of ctx, it is given back as soon as the
// database can be reached, and runs out at the latest when it would have.
func (l *Lease) Release(ctx context.Context) error {
	m := l.m
	m.mu.Lock()
	tell := l.look()
	ended := l.err
	if ended == nil {
		l.err = &leaseError{key: l.key, state: ErrReleased}
		l.end(l.err)
	}
	held := m.config.clock().since(l.since)
	m.mu.Unlock()
	tell()
	back := listed{l.claim, l.atLeast}
	if ended != nil {
		if errors.Is(ended, ErrLost) && !errors.Is(ended, ErrClosed) {
			m.stray(back, l.ttl) // a renewal may have arrived late
		}
		return ended
	}
	there, err := m.handBack(ctx, back)
	m.mu.Lock()
	m.wake(l.place())
	m.mu.Unlock()
	switch {
	case err != nil:
		m.stray(back, l.ttl)
		return &leaseError{key: l.key, state: explain(err), detail: "release not confirmed"}
	case !there:
		return l.lostAtRelease()
	}
	if m.config.observer != nil {
		m.observe(ctx, observe.Event{Kind: observe.Released, Key: l.key.String(), Mode: "exclusive", Token: l.Token().Number, Held: held})
	}
	return nil
}

// lostAtRelease turns a release that found nothing into a loss.
func (l *Lease) lostAtRelease() error {
	l.m.mu.Lock()
	tell := l.m.lose(l, errGone)
	err := l.err
	l.m.mu.Unlock()
	tell()
	return err
}

// lose ends a lease as lost. It is called with mu held; what it returns is called without.
func (m *Manager) lose(l *Lease, cause error) (tell func()) {
	err := &leaseError{key: l.key, state: ErrLost, cause: cause}
	l.err = err
	if l.lost == nil {
		l.lost = make(chan struct{})
	}
	close(l.lost)
	l.end(err)
	e := observe.Event{
		Kind: observe.Lost, Key: l.key.String(), Mode: "exclusive", Token: l.Token().Number,
		Held: m.config.clock().since(l.since), Err: err,
	}
	return func() { m.observe(context.Background(), e) }
}

// end lets go of what belongs to a lease that is held. It is called with mu held.
func (l *Lease) end(cause error) {
	l.timer.Stop()
	if l.m.held[l.place()] == l {
		delete(l.m.held, l.place())
	}
	for b := range l.bound {
		b.cancel(cause)
	}
	l.bound = nil
}
