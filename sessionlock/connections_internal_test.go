package sessionlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/sessionlock/internal/dial"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// newcomer is a session that was dialled and has no role yet.
func (r *rig) newcomer(server string) *session {
	return newSession(&dial.Link{Server: &dial.Server{ID: server}, Since: time.Now()}, wire.Waiter, &r.outbox)
}

// L15: all sessions reach one server. If the address leads to another one, the locks on the old one are lost.
func TestConnections_anotherServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.want(1)
	r.yes(r.conns.home, wire.Try)
	if !r.conns.add(r.newcomer("one")) || w.lock.end.err != nil {
		t.Fatalf("a session of the same server: %v", w.lock.end.err)
	}
	if !r.conns.add(r.newcomer("two")) {
		t.Fatal("the new one is not taken in")
	}
	if err := w.lock.end.err; !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "the address now leads to another server: two, before it was one") {
		t.Errorf("the holder is told %v", err)
	}
	if len(r.conns.all) != 1 || r.conns.home != nil {
		t.Errorf("%d sessions live, home is %v", len(r.conns.all), r.conns.home)
	}
}

func TestConnections_closedTakesNobodyIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.life.closed = true
	if r.conns.add(r.newcomer("one")) || len(r.conns.all) != 1 {
		t.Error("a session is taken in")
	}
	if len(r.outbox.takeCalls()) != 1 {
		t.Error("its connection stays open")
	}
}

func TestConnections_loseOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	home := r.conns.home
	r.conns.lose(home, errSilent)
	r.conns.lose(home, ErrClosed)
	if home.dead != errSilent || len(r.outbox.takeCalls()) != 1 || len(r.conns.all) != 0 { //nolint:errorlint // the value itself
		t.Errorf("it ended by %v", home.dead)
	}
	select {
	case <-home.gone:
	default:
		t.Error("its watcher is not told")
	}
}

// L4: a session is lost 3h after the last proof, by either clock.
func TestConnections_checkAlive(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	home, now := r.conns.home, time.Now()
	home.provenAt = now
	if !r.conns.checkAlive(home, now.Add(3*time.Hour-time.Second)) {
		t.Error("lost too early")
	}
	if r.conns.checkAlive(home, now.Add(3*time.Hour)) || !errors.Is(home.dead, errSilent) {
		t.Errorf("not lost: %v", home.dead)
	}
}

func TestConnections_dialFails(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	r := newRig(t)
	r.conns.dialer.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return refused }
	w, hasty := r.want(1), r.want(2, try)
	for _, x := range []*waiter{w, hasty} {
		x.entry.state, x.entry.session = asking, nil // as before there was a home
	}
	if r.conns.findHomeOnce() {
		t.Error("there is a home")
	}
	if !errors.Is(r.conns.dialError, refused) || !errors.Is(hasty.err, refused) || w.finished {
		t.Errorf("the reason is %v, who does not wait is told %v", r.conns.dialError, hasty.err)
	}
	r.life.cancel()
	if !r.conns.findHomeOnce() {
		t.Error("it is tried again after Close")
	}
	r.waitlist.dial()
	if !errors.Is(r.conns.dialError, refused) || r.waitlist.pool.dialing != -1 || r.waitlist.pool.hasRoom() {
		t.Error("dialling a waiter again does not wait")
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	var b backoff
	last := time.Duration(0)
	for i := range 20 {
		next := b.next()
		if next < last || next > maxBackoff || i == 0 && next != minBackoff {
			t.Fatalf("pause %d is %s after %s", i, next, last)
		}
		last = next
	}
	if last != maxBackoff {
		t.Errorf("it ends at %s", last)
	}
	for range 100 {
		if d := holder.Jitter(time.Second); d < 750*time.Millisecond || d > 1250*time.Millisecond {
			t.Fatalf("a second became %s", d)
		}
	}
}

// When an idle session sends a heartbeat, and when it is looked at again.
func TestUpkeep_heartbeat(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	home, h := r.conns.home, r.conns.dialer.Heartbeat
	now := time.Now()
	home.sentAt, home.provenAt = now, now
	if next := r.upkeep.doDue(now.Add(time.Second)); !next.Equal(now.Add(h)) {
		t.Errorf("looks again after %s", next.Sub(now))
	}
	r.silent(home)
	r.upkeep.doDue(now.Add(h))
	r.asks(home, wire.Beat)
	home.sentAt = now.Add(h)
	if next := r.upkeep.doDue(now.Add(h)); next.After(now.Add(2 * h)) {
		t.Errorf("looks again after %s where an answer is awaited", next.Sub(now))
	}
	r.upkeep.doDue(now.Add(3 * h))
	if !errors.Is(home.dead, errSilent) {
		t.Errorf("silent for 3h and %v", home.dead)
	}
}

func TestUpkeep_endsWhatIsNotNeeded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	free, holding, issuer := r.addWaiter(), r.addWaiter(), r.addIssuer()
	r.waitlist.free = []*session{free} // the other one holds a key
	now := time.Now()
	for _, s := range r.conns.all {
		s.freeAt = now.Add(-keepFree + time.Second)
	}
	r.upkeep.doDue(now)
	if len(r.conns.all) != 4 {
		t.Fatalf("%d sessions live, want all", len(r.conns.all))
	}
	r.issuer.waiting = []*tokenRequest{{}}
	r.upkeep.doDue(now.Add(time.Second))
	if free.dead == nil || holding.dead != nil || issuer.dead != nil || r.conns.home.dead != nil {
		t.Errorf("free: %v, holds: %v, has tokens to issue: %v, home: %v", free.dead, holding.dead, issuer.dead, r.conns.home.dead)
	}
	r.issuer.waiting = nil
	r.upkeep.doDue(now.Add(time.Second))
	if !errors.Is(issuer.dead, errUnused) {
		t.Errorf("nothing to issue: %v", issuer.dead)
	}
}

func TestUpkeep_pollsWhenDue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.refused(1)
	at := r.waitlist.pollAt
	if next := r.upkeep.doDue(at.Add(-time.Millisecond)); !next.Equal(at) {
		t.Errorf("looks again at %s, the poll is due at %s", next, at)
	}
	r.silent(r.conns.home)
	r.upkeep.doDue(at)
	r.no(r.conns.home, wire.Try)
	r.conns.home = nil
	r.waitlist.pollAt = at
	r.waits(w)
	r.upkeep.doDue(at) // without a home nothing is asked
	if !r.waitlist.pollAt.IsZero() {
		t.Error("the poll is due still: the new home begins with one")
	}
}

func TestLifetime_confirmed(t *testing.T) {
	t.Parallel()
	l := newLifetime(t.Context())
	defer l.cancel()
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errSilent)
	a, b := lone(), lone()
	l.askLast(a)
	l.askLast(b)
	l.confirm(a)
	if err := l.awaitConfirmed(ended); !errors.Is(err, errUnconfirmed) || !errors.Is(err, errSilent) {
		t.Errorf("one has not confirmed: %v", err)
	}
	l.confirm(b)
	if err := l.awaitConfirmed(t.Context()); err != nil || a.lastUnlock || b.lastUnlock {
		t.Errorf("all have: %v", err)
	}
}

func TestLifetime_awaitEnd(t *testing.T) {
	t.Parallel()
	l := newLifetime(t.Context())
	l.run(func() { <-l.ctx.Done() })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.awaitEnd(ended); !errors.Is(err, errRunning) {
		t.Errorf("while a task runs: %v", err)
	}
	l.cancel()
	if err := l.awaitEnd(t.Context()); err != nil {
		t.Errorf("when none runs: %v", err)
	}
}

func TestLifetime_during(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l, mu := r.life, r.conns.mu
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	wait := func(ctx context.Context) { <-ctx.Done() }
	if err := l.during(ctx, mu, wait); !errors.Is(err, cause) {
		t.Errorf("the caller's ctx ended: %v", err)
	}
	began, over := make(chan struct{}), make(chan error)
	go func() {
		over <- l.during(t.Context(), mu, func(ctx context.Context) {
			close(began)
			wait(ctx)
		})
	}()
	<-began
	l.cancel()
	if err := <-over; !errors.Is(err, ErrClosed) {
		t.Errorf("the manager was closed: %v", err)
	}
	l.closed = true
	if err := l.during(t.Context(), mu, wait); !errors.Is(err, ErrClosed) {
		t.Errorf("it was closed before: %v", err)
	}
}

// Close asks every session to release what it holds, except those that wait and those that hold nothing.
func TestCore_askLast(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	waiting, holding, issuer := r.addWaiter(), r.addWaiter(), r.addIssuer()
	r.waitlist.free = []*session{waiting}
	r.refused(1)
	r.asks(waiting, wire.Wait)
	r.life.closed = true
	r.askLast()
	if !errors.Is(waiting.dead, ErrClosed) || !errors.Is(issuer.dead, ErrClosed) || holding.dead != nil {
		t.Errorf("who waits: %v, the issuer: %v, who holds: %v", waiting.dead, issuer.dead, holding.dead)
	}
	r.yes(r.conns.home, wire.UnlockAll)
	if r.life.unconfirmed != 1 {
		t.Errorf("%d have not confirmed, want one", r.life.unconfirmed)
	}
	r.conns.lose(holding, errSilent) // counts as confirmed
	if err := r.life.awaitConfirmed(t.Context()); err != nil {
		t.Error(err)
	}
}
