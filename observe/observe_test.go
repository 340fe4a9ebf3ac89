package observe_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gormlock/gormlock/observe"
)

type counter struct{ events atomic.Int64 }

func (c *counter) Observe(context.Context, observe.Event) { c.events.Add(1) }

// mustReach waits until all have been told n times: on a busy machine nobody waits for an observer that long.
func mustReach(t *testing.T, n int64, counters ...*counter) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(time.Millisecond) {
		reached := true
		for _, c := range counters {
			if told := c.events.Load(); told > n || told < n && time.Now().After(deadline) {
				t.Fatalf("told %d times, want %d", told, n)
			} else if told < n {
				reached = false
			}
		}
		if reached {
			return
		}
	}
}

type panicking struct{ counter }

func (p *panicking) Observe(ctx context.Context, e observe.Event) {
	p.counter.Observe(ctx, e)
	panic("of the observer")
}

// text is a log that several goroutines write.
type text struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *text) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(line)
}

func (l *text) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// mustSay waits until the log says so.
func (l *text) mustSay(t *testing.T, what string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(l.String(), what); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q in the report:\n%s", what, l)
		}
	}
}

// log collects what slog.Default is given; tests that use it do not run beside others.
func log(t *testing.T) *text {
	t.Helper()
	var l text
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&l, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &l
}

//nolint:paralleltest // it changes slog.Default
func TestContain_endsPanicsAndReportsTheFirst(t *testing.T) {
	text := log(t)
	inner := &panicking{}
	o := observe.Contain(inner)
	for range 3 {
		o.Observe(t.Context(), observe.Event{Kind: observe.Acquired, Key: "invoice/42"})
	}
	mustReach(t, 3, &inner.counter)
	for _, want := range []string{"of the observer", "invoice/42", "event=acquired", "observe_test.go"} {
		text.mustSay(t, want)
	}
	if n := strings.Count(text.String(), "an observer panicked"); n != 1 {
		t.Errorf("reported %d times, want once:\n%s", n, text)
	}
}

//nolint:paralleltest // it changes slog.Default
func TestMulti_tellsAllWhateverOneDoes(t *testing.T) {
	text := log(t)
	a, b, c := &counter{}, &panicking{}, &counter{}
	o := observe.Contain(observe.Multi(a, nil, observe.Multi(b, c)))
	o.Observe(t.Context(), observe.Event{Kind: observe.Lost})
	o.Observe(t.Context(), observe.Event{Kind: observe.Lost})
	mustReach(t, 2, a, &b.counter, c)
	text.mustSay(t, "an observer panicked")
	if n := strings.Count(text.String(), "an observer panicked"); n != 1 {
		t.Errorf("reported %d times, want once:\n%s", n, text)
	}
}

func TestNobody_isNilToEmitters(t *testing.T) {
	t.Parallel()
	nobody := observe.Multi(nil, nil)
	if observe.Contain(nil) != nil || observe.Contain(nobody) != nil || observe.Contain(observe.Multi()) != nil {
		t.Error("no observer is not nil, so emitters would pay for nobody")
	}
	nobody.Observe(t.Context(), observe.Event{Kind: observe.Lost}) // for those who call it themselves
	if o := observe.Contain(&counter{}); observe.Contain(o) != o || observe.Multi(o) != o {
		t.Error("a contained observer is wrapped again")
	}
}

//nolint:paralleltest // allocations are counted for the whole process
func TestContained_allocatesLittle(t *testing.T) {
	e := observe.Event{Kind: observe.Acquired, Key: "invoice/42", Wait: time.Second}
	for name, c := range map[string]struct {
		o    observe.Observer
		most float64
	}{
		"Slog below the level": {observe.Slog(slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil))), 0},
		"Contain":              {observe.Contain(&counter{}), 3}, // a goroutine and its context
		"Multi of two":         {observe.Multi(&counter{}, &counter{}), 6},
	} {
		least := math.Inf(1) // a pool that was emptied meanwhile counts more, and the race detector empties them by chance
		for round := 0; round < 50 && least > c.most; round++ {
			least = min(least, testing.AllocsPerRun(3, func() { c.o.Observe(context.Background(), e) }))
		}
		if least > c.most {
			t.Errorf("%s: %v allocations an event, want %v", name, least, c.most)
		}
	}
}

func TestSlog_saysWhatHappened(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		event observe.Event
		want  string
	}{
		{
			observe.Event{Kind: observe.Acquired, Source: "sessionlock", Key: "a b/1", Mode: "shared", Owner: "me", Token: 7, Wait: time.Second},
			`level=DEBUG msg="gormlock: acquired" source=sessionlock key="a b/1" mode=shared owner=me token=7 wait=1s`,
		},
		{observe.Event{Kind: observe.NotAcquired, Key: "k"}, `level=INFO msg="gormlock: not acquired" key=k`},
		{observe.Event{Kind: observe.TimedOut, Key: "k", Wait: 2 * time.Second}, `level=INFO msg="gormlock: timed out" key=k wait=2s`},
		{observe.Event{Kind: observe.Released, Key: "k", Held: time.Minute}, `level=DEBUG msg="gormlock: released" key=k held=1m0s`},
		{observe.Event{Kind: observe.Lost, Key: "k", Err: errors.New("cut")}, `level=WARN msg="gormlock: lost" key=k err=cut`},
		{observe.Event{Kind: observe.Stale, Table: "accounts"}, `level=INFO msg="gormlock: stale" table=accounts`},
		{observe.Event{Kind: observe.Fenced, Table: "reports", Token: 3}, `level=WARN msg="gormlock: fenced" table=reports token=3`},
		{observe.Event{Kind: observe.Claimed, Table: "jobs"}, `level=DEBUG msg="gormlock: claimed" table=jobs rows=0`},
		{observe.Event{Kind: observe.Retried, Err: errors.New("stale")}, `level=INFO msg="gormlock: retried" err=stale`},
		{observe.Event{Kind: observe.Done, Source: "work", Table: "mails", Key: "7", Held: time.Second}, `level=DEBUG msg="gormlock: done" source=work key=7 table=mails held=1s`},
		{observe.Event{Kind: observe.Failed, Key: "7", Err: errors.New("no")}, `level=INFO msg="gormlock: failed" key=7 err=no`},
		{observe.Event{Kind: observe.Later, Key: "7"}, `level=DEBUG msg="gormlock: later" key=7`},
		{observe.Event{Kind: observe.Dead, Key: "7"}, `level=WARN msg="gormlock: dead" key=7`},
		{observe.Event{Kind: observe.TakenOver, Key: "7"}, `level=WARN msg="gormlock: taken over" key=7`},
	} {
		var text bytes.Buffer
		handler := slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})
		observe.Slog(slog.New(handler)).Observe(t.Context(), c.event)
		if got := strings.TrimSpace(text.String()); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

//nolint:paralleltest // it changes slog.Default
func TestSlog_nilIsTheDefault(t *testing.T) {
	o := observe.Slog(nil)
	text := log(t)
	o.Observe(t.Context(), observe.Event{Kind: observe.Lost, Key: "k"})
	text.mustSay(t, "gormlock: lost")
}

// Observers are told from many goroutines at once.
func TestContain_fromManyGoroutines(t *testing.T) {
	t.Parallel()
	o := observe.Contain(observe.Slog(slog.New(slog.DiscardHandler)))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				o.Observe(t.Context(), observe.Event{Kind: observe.Lost})
			}
		})
	}
	all.Wait()
}
