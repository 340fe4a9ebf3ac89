package lease_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/tests/internal/torture"
)

// term is what a worker says of one time that it held a register.
type term struct {
	w        *worker
	e        torture.Event
	token    fence.Token
	believed int64 // when it last knew that it held
	open     bool  // its end was not told of
}

func (w *worker) begin(register int, call int64, token fence.Token) *term {
	t := &term{w: w, token: token, believed: call, open: true} // it may have been stopped since it was granted
	t.e = torture.Event{What: "held", Register: register, Token: token.Number, Call: call, Return: torture.Now()}
	w.Say(t.e)
	return t
}

// lost says that it was lost at some time since it was believed in last.
func (t *term) lost() {
	if t.open {
		t.e.What, t.e.Call, t.e.Return, t.open = "lost", t.believed, torture.Now(), false
		t.w.Say(t.e)
	}
}

// ended says that it was given back at some time since call, confirmed or not.
func (t *term) ended(call int64, confirmed bool) {
	if t.open {
		t.e.What, t.e.Call, t.e.Return, t.open = "unsure", call, torture.Now(), false
		if confirmed {
			t.e.What = "released"
		}
		t.w.Say(t.e)
	}
}

// between is the loss of who is told of it: since it last knew that it held.
func between(lost torture.Event) (call, ret int64) { return lost.Call, lost.Return }

// lead leads, writes while it believes that it does, and ends.
func (w *worker) lead(ctx context.Context, register int) {
	k := lockkey.Of("register", register)
	call := torture.Now()
	var current *term
	var over int64
	err := w.m.Lead(ctx, k, workerTTL, func(ctx context.Context) error {
		if current != nil {
			current.lost()
		}
		current = w.begin(register, call, fence.FromContext(ctx)[0])
		for end := time.Now().Add(rand.N(60 * time.Millisecond)); ctx.Err() == nil && time.Now().Before(end); pgtest.Pause(30 * time.Millisecond) {
			if at := torture.Now(); w.m.Leading(k) {
				current.believed = at
				w.Write(register, current.token)
			}
		}
		call = torture.Now() // of the next campaign, if there is one
		over = call
		return nil
	})
	switch {
	case current == nil:
	case err == nil:
		current.ended(over, true)
	default:
		current.lost()
	}
	pgtest.Pause(20 * time.Millisecond)
}

// everyStep is the interval of the workers' schedules.
const everyStep = 150 * time.Millisecond

var errNotWritten = errors.New("not written")

// every runs a schedule whose runs write, and count what they did. Runs under one lease are one term. It leaves the schedule to
// others a second after its first run at most: where runs take longer than their interval, who holds it would hold it for ever.
func (w *worker) every(ctx context.Context, register int) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // if it never runs
	defer cancel()
	leave := sync.OnceFunc(func() { time.AfterFunc(200*time.Millisecond+rand.N(800*time.Millisecond), cancel) })
	call := torture.Now()
	var t *term
	_ = w.m.Every(ctx, lockkey.Of("register", register), lease.Interval(everyStep), func(ctx context.Context, tick time.Time) error {
		leave()
		token := fence.FromContext(ctx)[0]
		if t == nil || t.token != token {
			if t != nil {
				t.ended(t.believed, false)
			}
			t = w.begin(register, call, token)
		}
		defer func() { call = torture.Now() }()
		pgtest.Pause(20 * time.Millisecond)
		at := torture.Now()
		if !w.Ran(register, token, tick) {
			t.lost()
			return errNotWritten
		}
		t.believed = at // for the database took its word
		w.Write(register, token)
		pgtest.Pause(60 * time.Millisecond) // for faults between the work and the word of it
		return ctx.Err()
	}, lease.Missed(lease.RunAll), lease.Tries(1_000_000), lease.TTL(workerTTL))
	if t != nil {
		t.ended(t.believed, false)
	}
	pgtest.Pause(20 * time.Millisecond)
}

// slot takes one of as many slots as there are registers, and the register of that slot.
func (w *worker) slot(ctx context.Context, _ int) {
	call := torture.Now()
	l, err := w.m.Acquire(ctx, lockkey.Of("slots"), workerTTL, lease.Slots(torture.Registers), lease.Timeout(5*time.Second))
	if err != nil {
		pgtest.Pause(20 * time.Millisecond) // the server may be down
		return
	}
	t := w.begin(l.Slot(), call, l.Token())
	for end := time.Now().Add(rand.N(30 * time.Millisecond)); time.Now().Before(end); pgtest.Pause(10 * time.Millisecond) {
		if at := torture.Now(); l.Err() == nil {
			t.believed = at
			w.Write(l.Slot(), l.Token())
		}
	}
	detached, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	over := torture.Now()
	err = l.Release(detached)
	if errors.Is(err, lease.ErrLost) {
		t.lost()
	}
	t.ended(over, err == nil)
	pgtest.Pause(4 * time.Millisecond)
}
