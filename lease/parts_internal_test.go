package lease

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

func TestWaiters_firstComeFirstWoken(t *testing.T) {
	t.Parallel()
	q := &waiters{}
	at, other := holder.Place{Space: 1, ID: 7}, holder.Place{Space: 2, ID: 7}
	a, b, c, slot := q.join(at, 0), q.join(at, 0), q.join(other, 0), q.join(at, 3)
	isFirst := func(w *waiter) bool {
		select {
		case <-w.first:
			return true
		default:
			return false
		}
	}
	if !isFirst(a) || isFirst(b) || !isFirst(c) || !isFirst(slot) {
		t.Fatal("the first of each queue is not the first, or another is")
	}
	q.wake(holder.Place{Space: 1 + 2*slotStep, ID: 7}) // a slot of it
	q.wake(at)                                         // waking twice is like once
	if len(a.woken) != 1 || len(b.woken) != 0 || len(c.woken) != 0 || len(slot.woken) != 1 {
		t.Errorf("woken: %d, %d, %d", len(a.woken), len(b.woken), len(c.woken))
	}
	q.wakeAll()
	if len(c.woken) != 1 {
		t.Error("not all are woken")
	}
	q.leave(at, 0, a)
	if !isFirst(b) {
		t.Error("the next one is not the first")
	}
	q.leave(at, 0, b)
	q.leave(at, 3, slot)
	q.leave(other, 0, c)
	q.wake(at)
	if len(q.queues) != 0 {
		t.Errorf("empty queues are kept: %v", q.queues)
	}
}

// holdingsAt returns holdings whose clock the test moves, and the events that they report.
func holdingsAt(now *holder.Instant) (h *holdings, lost *[]observe.Event) {
	lost = &[]observe.Event{}
	h = &holdings{clock: func() holder.Instant { return *now }, wakeBy: func(time.Duration) {}, held: map[holder.Place]*Lease{}}
	h.observe = func(_ context.Context, e observe.Event) { *lost = append(*lost, e) }
	return h, lost
}

func leaseOf(h *holdings, id int64, ttl time.Duration) *Lease {
	now := h.clock()
	return &Lease{
		m: &Manager{holdings: h, config: &config{}}, key: lockkey.Int64(id), ttl: ttl, renews: true, since: now,
		claim: claim{token: fence.Token{Space: 1, ID: id, Number: 1}}, state: state{proof: now},
	}
}

func TestHoldings_renewTogetherAndLose(t *testing.T) {
	t.Parallel()
	now := holder.Instant{Mono: time.Hour, Wall: time.Hour}
	move := func(d time.Duration) { now = holder.Instant{Mono: now.Mono + d, Wall: now.Wall + d} }
	h, lost := holdingsAt(&now)
	a, b, c := leaseOf(h, 1, 30*time.Second), leaseOf(h, 2, 30*time.Second), leaseOf(h, 3, time.Hour)
	for _, l := range []*Lease{a, b, c} {
		if !h.add(l) {
			t.Fatal("not held")
		}
	}
	if batch, _, next, _ := h.due(now); len(batch) != 0 || next != now.Mono+10*time.Second {
		t.Errorf("at once %d are due, the next in %s", len(batch), next-now.Mono)
	}
	move(10 * time.Second)
	batch, _, _, _ := h.due(now)
	if len(batch) != 2 {
		t.Fatalf("after a third of their length %d are due", len(batch))
	}
	if again, _, _, _ := h.due(now); len(again) != 0 {
		t.Errorf("%d are renewed twice at once", len(again))
	}
	found := map[*Lease]renewed{a: renewedInTime, b: rowGone}
	sent := now
	move(time.Second)
	for _, tell := range h.renewed(batch, []renewed{found[batch[0]], found[batch[1]]}, sent) {
		tell()
	}
	if a.Err() != nil || a.state.proof != sent || !errors.Is(b.Err(), ErrLost) || !errors.Is(b.Err(), errGone) {
		t.Errorf("after the answer: %v and %v", a.Err(), b.Err())
	}
	if len(*lost) != 1 || (*lost)[0].Kind != observe.Lost {
		t.Errorf("told of: %v", *lost)
	}
	move(30 * time.Second) // no further renewal
	if _, _, _, told := h.due(now); len(told) != 1 || !errors.Is(a.Err(), ErrLost) {
		t.Errorf("what ran out: %v", a.Err())
	}
	late := leaseOf(h, 4, time.Second)
	move(time.Second)
	if h.add(late) {
		t.Error("an answer that came too late is believed")
	}
	left, _, first := h.close()
	if len(left) != 1 || !first || !errors.Is(c.Err(), ErrClosed) || !errors.Is(c.Err(), ErrLost) || h.add(leaseOf(h, 5, time.Hour)) {
		t.Errorf("closed: %d left, %v", len(left), c.Err())
	}
}

// If a lease is granted that this manager already holds, the old holder has lost it, and is told first.
func TestHoldings_theNextHolderEndsTheOneBefore(t *testing.T) {
	t.Parallel()
	now := holder.Now()
	h, _ := holdingsAt(&now)
	a, b := leaseOf(h, 1, time.Hour), leaseOf(h, 1, time.Hour)
	h.add(a)
	bound, stop := a.Bind(t.Context())
	defer stop()
	h.add(b)
	if !errors.Is(context.Cause(bound), ErrLost) || !errors.Is(a.Err(), errTaken) || b.Err() != nil {
		t.Errorf("the one before: %v, the next: %v", a.Err(), b.Err())
	}
}

func TestUnconfirmed_isLookedForUntilItRanOut(t *testing.T) {
	t.Parallel()
	now := holder.Instant{Mono: time.Hour}
	b := startBackground(t)
	u := &unconfirmed{store: &store{server: &server{clock: func() holder.Instant { return now }}}, background: b, waiters: &waiters{}}
	u.add(item{claim: claim{holder: "x"}}, 3*time.Second)
	for at, looks := now.Mono, 0; ; looks++ {
		items, next := u.due(at)
		if len(items) == 0 {
			if looks < 4 || at-now.Mono < 3*time.Second {
				t.Errorf("given up after %d looks and %s", looks, at-now.Mono)
			}
			break
		}
		if items[0].holder != "x" || next <= at {
			t.Fatalf("looked for %v, next %s later", items, next-at)
		}
		at = next
	}
	u.add(item{claim: claim{holder: "y"}}, time.Second)
	if left := u.close(); len(left) != 1 || left[0].holder != "y" {
		t.Errorf("left: %v", left)
	}
}

func TestBackground_looksWhenSomethingIsDue(t *testing.T) {
	t.Parallel()
	b := startBackground(t)
	looked := make(chan holder.Instant)
	b.start(func() {
		b.watch(holder.Now, func(now holder.Instant) time.Duration {
			looked <- now
			return now.Mono + 50*time.Millisecond
		})
	})
	first := <-looked
	if second := <-looked; second.Since(first) < 40*time.Millisecond {
		t.Errorf("looked again after %s", second.Since(first))
	}
	third := <-looked
	b.wakeBy(third.Mono) // now
	fourth := <-looked
	if fourth.Since(third) > 45*time.Millisecond {
		t.Logf("woken after %s on a slow machine", fourth.Since(third))
	}
	b.close()
	go func() {
		for range looked {
			continue
		}
	}()
	b.wait()
	b.start(func() { t.Error("it starts something after its end") })
	close(looked)
}

func TestParsePlace(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]holder.Place{"1:7": {Space: 1, ID: 7}, "2:-9": {Space: 2, ID: -9}} {
		if at, ok := parsePlace(payload); !ok || at != want {
			t.Errorf("%q: %v, %v", payload, at, ok)
		}
	}
	for _, payload := range []string{"", "1", "x:1", "1:x", "99999:1"} {
		if at, ok := parsePlace(payload); ok {
			t.Errorf("%q is read as %v", payload, at)
		}
	}
}

// The deadline of a connection that is being made may pass a moment before its ctx ends. That is no answer either.
func TestUnanswered_beforeTheContextSaysSo(t *testing.T) {
	t.Parallel()
	asking, cancel := context.WithCancelCause(t.Context())
	at := time.Now()
	time.AfterFunc(20*time.Millisecond, func() { cancel(context.DeadlineExceeded) })
	err := unanswered(t.Context(), lateDeadline{asking, at}, time.Second, os.ErrDeadlineExceeded)
	if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "no answer from the database within 1s") {
		t.Error(err)
	}
}

// lateDeadline is a context that ends later than it says.
type lateDeadline struct {
	context.Context
	at time.Time
}

func (l lateDeadline) Deadline() (time.Time, bool) { return l.at, true }

// passes is true for errors whose cause ends by itself, and false for errors with a lasting cause.
func TestPasses(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]bool{
		"57P01": true, "57P02": true, "57P03": true, "57P05": true, "25P03": true, "25P04": true, "57014": true, "55P03": true, "25006": true,
		"08006": true, "53300": true, "57P04": false, "08P01": false, "42P01": false, "28P01": false,
	} {
		if got := passes(&pgconn.PgError{Code: code}); got != want {
			t.Errorf("%s passes: %t", code, got)
		}
	}
	for code, want := range map[string]bool{"08P01": true, "XX000": true, "58000": true, "28P01": false, "3D000": false} { // as poolers say it
		if err := error(&pgconn.PgError{Code: code, Severity: "FATAL"}); passes(err) != want || want && explain(err).Error() != err.Error() {
			t.Errorf("%s passes: %t, %v", code, passes(err), explain(err))
		}
	}
	if mixedUp := (&pgconn.PgError{Code: "08P01", Severity: "ERROR"}); explain(mixedUp).Error() == mixedUp.Error() {
		t.Error("a mix-up of prepared statements has no cure")
	}
}
