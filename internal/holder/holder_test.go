package holder_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

var errCut = errors.New("gormlock: cut")

func TestError_saysAndIs(t *testing.T) {
	t.Parallel()
	err := &holder.Error{Thing: "lock", Key: lockkey.Of("report", 1), State: holder.ErrLost, Detail: "on the way", Cause: errCut}
	if want := "gormlock: lock report/1: lost, on the way: cut"; err.Error() != want {
		t.Errorf("got %q, want %q", err.Error(), want)
	}
	if !errors.Is(err, holder.ErrLost) || !errors.Is(err, errCut) || errors.Is(err, holder.ErrReleased) {
		t.Errorf("errors.Is does not see what it is: %v", err)
	}
	err = &holder.Error{Thing: "lease", Key: lockkey.Of("report"), State: holder.ErrReleased}
	if want := "gormlock: lease report: already released"; err.Error() != want || !errors.Is(err, holder.ErrReleased) {
		t.Errorf("got %q, want %q", err.Error(), want)
	}
}

func TestContexts(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var c holder.Contexts
	held := func() error { return nil }
	a, _ := c.Bind(t.Context(), &mu, held)
	b, stop := c.Bind(t.Context(), &mu, held)
	stop()
	if b.Err() == nil || !errors.Is(context.Cause(b), context.Canceled) || a.Err() != nil {
		t.Errorf("stop of one: %v and %v", context.Cause(b), a.Err())
	}
	mu.Lock()
	c.End(errCut)
	mu.Unlock()
	if !errors.Is(context.Cause(a), errCut) || errors.Is(context.Cause(b), errCut) {
		t.Errorf("after the end: %v, and of the stopped one %v", context.Cause(a), context.Cause(b))
	}
	late, stop := c.Bind(t.Context(), &mu, func() error { return errCut })
	stop()
	if !errors.Is(context.Cause(late), errCut) {
		t.Errorf("bound to what has ended: %v", context.Cause(late))
	}
}

type lock struct {
	err      error
	released func(ctx context.Context) error
}

func (l *lock) Err() error { return l.err }

func (l *lock) Bind(ctx context.Context) (context.Context, func()) { return context.WithCancel(ctx) }

func (l *lock) Release(ctx context.Context) error { return l.released(ctx) }

func TestHolds(t *testing.T) {
	t.Parallel()
	m, other := new(int), new(int)
	k, old, further := holder.Place{Space: 1, ID: 7}, holder.Place{Space: 2, ID: 7}, holder.Place{Space: 1, ID: 8}
	outer, inner := &lock{}, &lock{}
	ctx := holder.Mark(t.Context(), m, outer, k, old)
	ctx = holder.Mark(ctx, m, inner, further)
	for _, at := range []holder.Place{k, old, further} {
		if !holder.Holds(ctx, m, at) || holder.Holds(ctx, other, at) || holder.Holds(t.Context(), m, at) {
			t.Errorf("%v: %v, of another manager %v, without marks %v", at, holder.Holds(ctx, m, at), holder.Holds(ctx, other, at), holder.Holds(t.Context(), m, at))
		}
	}
	outer.err = holder.ErrLost
	if holder.Holds(ctx, m, k) || holder.Holds(ctx, m, old) || !holder.Holds(ctx, m, further) {
		t.Error("a lock that has ended is in the way, or one that has not is not")
	}
}

func TestDo_releasesUnderAContextOfItsOwn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	released := 0
	l := &lock{released: func(ctx context.Context) error {
		released++
		if _, bounded := ctx.Deadline(); ctx.Err() != nil || !bounded {
			t.Errorf("the release has a ctx that ended, or never ends: %v", ctx.Err())
		}
		return holder.ErrLost
	}}
	err := holder.Do(ctx, l, time.Minute, func(ctx context.Context) error {
		cancel()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, holder.ErrLost) {
		t.Errorf("got %v, want both errors", err)
	}
	if err := holder.Do(t.Context(), l, time.Minute, func(context.Context) error { return nil }); !errors.Is(err, holder.ErrLost) {
		t.Errorf("a loss is hidden: %v", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic does not go on up")
			}
		}()
		_ = holder.Do(t.Context(), l, time.Minute, func(context.Context) error { panic("x") })
	}()
	if released != 3 {
		t.Errorf("released %d times of 3", released)
	}
}

// An option that is nil or refused ends the call. The error for a nil option names the call.
func TestApply(t *testing.T) {
	t.Parallel()
	type option interface{ apply(*[]int) error }
	for name, c := range map[string]struct {
		opts []option
		want error
		text string
		set  int
	}{
		"none":    {},
		"all":     {opts: []option{adds(1), adds(2)}, set: 2},
		"nil":     {opts: []option{adds(1), nil, adds(2)}, want: advisory.ErrOption, text: "gormlock: invalid lock option: Open: an option is nil", set: 1},
		"refused": {opts: []option{adds(1), adds(-1), adds(2)}, want: errCut, text: errCut.Error(), set: 1},
	} {
		var added []int
		err := holder.Apply("Open", c.opts, &added, option.apply)
		if !errors.Is(err, c.want) || err != nil && err.Error() != c.text || len(added) != c.set {
			t.Errorf("%s: %v, %v", name, added, err)
		}
	}
}

// adds is an option that is refused if it is negative.
type adds int

func (n adds) apply(to *[]int) error {
	if n < 0 {
		return errCut
	}
	return holder.Set(to, append(*to, int(n)))
}

func TestTimedOut(t *testing.T) {
	t.Parallel()
	ctx, cancel := holder.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	if !holder.TimedOut(ctx) {
		t.Error("its own limit is not known again")
	}
	theirs, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-theirs.Done()
	ctx, cancel = holder.WithTimeout(theirs, time.Hour)
	defer cancel()
	if holder.TimedOut(ctx) || ctx.Err() == nil {
		t.Error("the caller's limit is taken for ours")
	}
	if ctx, _ := holder.WithTimeout(t.Context(), 0); ctx != t.Context() {
		t.Error("no limit is one")
	}
	if err := holder.CheckTimeout(0); !errors.Is(err, advisory.ErrOption) || holder.CheckTimeout(1) != nil {
		t.Errorf("CheckTimeout(0): %v", err)
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		kind observe.Kind
		ok   bool
	}{
		{t.Context(), nil, observe.Acquired, true},
		{t.Context(), advisory.ErrNotAcquired, observe.NotAcquired, true},
		{t.Context(), advisory.ErrLockTimeout, observe.TimedOut, true},
		{ended, errCut, observe.TimedOut, true},
		{t.Context(), errCut, 0, false},
	} {
		if kind, ok := holder.Outcome(c.ctx, c.err); kind != c.kind || ok != c.ok {
			t.Errorf("%v: %v, %v", c.err, kind, ok)
		}
	}
}

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	for key, want := range map[lockkey.Key]holder.Place{
		lockkey.Int64(-7):      {Space: 1, ID: -7},
		lockkey.Pair(-1, -2):   {Space: 2, ID: -2}, // the sign of the lower half does not spill
		lockkey.Pair(1, -1):    {Space: 2, ID: 1<<32 | 0xffffffff},
		lockkey.Pair(1<<30, 3): {Space: 2, ID: 1<<62 | 3},
	} {
		if at, err := holder.PlaceOf(key); err != nil || at != want {
			t.Errorf("%s: %v, %v, want %v", key, at, err, want)
		}
	}
	if _, err := holder.PlaceOf(lockkey.Of(1.5)); !errors.Is(err, lockkey.ErrInvalid) {
		t.Errorf("an invalid key: %v", err)
	}
}

func TestInstant_believesTheClockByWhichMorePassed(t *testing.T) {
	t.Parallel()
	began := holder.Instant{Mono: time.Second, Wall: time.Hour}
	for _, later := range []holder.Instant{
		{Mono: 3 * time.Second, Wall: time.Hour + time.Second},   // the wall clock was set back
		{Mono: time.Second, Wall: time.Hour + 2*time.Second},     // the machine slept
		{Mono: 3 * time.Second, Wall: time.Hour - 2*time.Minute}, // set far back
	} {
		if d := later.Since(began); d != 2*time.Second {
			t.Errorf("%v: %s passed", later, d)
		}
	}
	a := holder.Now()
	if d := holder.Now().Since(a); d < 0 || d > time.Minute {
		t.Errorf("between two calls %s passed", d)
	}
}
