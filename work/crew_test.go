package work

import (
	"context"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
)

// A job that is claimed again replaces its earlier attempt, wherever that is.
func TestCrew_claimedAgain(t *testing.T) {
	t.Parallel()
	fresh := func() *crew { return newCrew(1, newProofs(context.Background(), time.Hour)) }
	claim := func(c *crew, claims ...string) (got []*item) {
		for i, claim := range claims {
			got = append(got, &item{id: int64(i + 1), claim: claim, shared: &attempt{}})
		}
		c.hold(got, holder.Now())
		return got
	}
	next := func(c *crew, want *item) {
		t.Helper()
		if _, it := c.next(context.Background()); it != want {
			t.Errorf("%+v begins, want %+v", it, want)
		}
	}
	c := fresh()
	c.add(claim(c, "a1", "b1"))
	again := claim(c, "a2")
	if len(c.queue) != 1 {
		t.Errorf("%d are queued", len(c.queue))
	}
	c.add(again)
	next(c, c.held[2])
	next(c, again[0])

	c = fresh() // not queued yet
	first := claim(c, "a1")
	again = claim(c, "a2")
	c.add(first)
	c.add(again)
	next(c, again[0])

	c = fresh() // its outcome is not stored yet
	first = claim(c, "a1")
	c.add(first)
	ctx, it := c.next(context.Background())
	c.ended(outcome{item: it, state: done})
	again = claim(c, "a2")
	c.add(again)
	next(c, again[0])
	if c.drop(first[0]); c.held[1] != again[0] || again[0].over || ctx.Err() == nil {
		t.Error("the outcome of the earlier attempt ended the later one")
	}

	c = fresh() // it has completed the job
	first = claim(c, "a1")
	c.add(first)
	ctx, it = c.next(context.Background())
	it.shared.completed.Store(true)
	c.add(claim(c, "a2"))
	c.lost(it)
	if ctx.Err() != nil {
		t.Error("a handler ends that has completed its job")
	}
	if c.ended(outcome{item: it, state: done, stored: true}); len(c.outcomes) != 1 {
		t.Error("it is not reported")
	}
}
