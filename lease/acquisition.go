package lease

import (
	"context"
	"errors"
	"time"

	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/observe"
)

const (
	firstPoll   = 10 * time.Millisecond
	longestPoll = 250 * time.Millisecond
	// heardPoll is how often a waiter asks again although notifications wake it.
	heardPoll = 2 * time.Second
)

// acquisition is one call that takes a lease.
type acquisition struct {
	m *Manager
	*request
}

// take takes the lease, within the time limit of the request.
func (a *acquisition) take(ctx context.Context) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, cause.Add(ctx, leaseError(a.key, err, nil, "not asked for"))
	}
	if holder.Holds(ctx, a.m, a.place()) {
		return nil, leaseError(a.key, ErrReentrant, nil, "")
	}
	ctx, cancel := holder.WithTimeout(ctx, a.timeout)
	defer cancel()
	began := time.Now()
	var l *Lease
	var err error
	if a.try {
		l, err = a.takeNow(ctx)
	} else {
		l, err = a.takeInTurn(ctx)
	}
	a.observe(ctx, l, began, err)
	return l, err
}

// takeNow asks until there is an answer. The reasons to ask again pass in a moment.
func (a *acquisition) takeNow(ctx context.Context) (*Lease, error) {
	for n := 0; ; n++ {
		asking, cancel := context.WithTimeout(ctx, a.within())
		l, answer, err := a.ask(asking, false)
		err = unanswered(ctx, asking, a.within(), err)
		cancel()
		switch {
		case err == nil && l != nil:
			return l, nil
		case err == nil && answer.refused():
			return nil, leaseError(a.key, ErrNotAcquired, nil, answer.String())
		case err == nil && n < 3, isRetry(err) && n < 10:
			continue
		case err == nil && ended(ctx) == nil:
			return nil, leaseError(a.key, ErrNotAcquired, nil, "others were faster, or the answer came too late")
		}
		return nil, a.gaveUp(ctx, nil, err)
	}
}

// takeInTurn waits to be the first of its queue, then asks until it gets the lease.
func (a *acquisition) takeInTurn(ctx context.Context) (*Lease, error) {
	w := a.m.waiters.join(a.place(), a.slots)
	defer a.m.waiters.leave(a.place(), a.slots, w)
	select {
	case <-w.first:
	case <-a.m.background.ctx.Done():
		return nil, leaseError(a.key, ErrClosed, nil, "")
	case <-ctx.Done():
		return nil, a.gaveUp(ctx, nil, ctx.Err())
	}
	var last error
	for n := 0; ; n++ {
		asking, cancel := context.WithTimeout(ctx, a.within())
		l, found, err := a.ask(asking, n > 0)
		cancel()
		switch {
		case err == nil && l != nil:
			return l, nil
		case err == nil && n == 0 && a.m.notifications.listener != nil:
			continue // the next question stores the wish to be woken in the row, so that the release notifies
		case err != nil && (ended(ctx) != nil || !passes(err)):
			return nil, a.gaveUp(ctx, last, err)
		case err != nil:
			last, found = err, &answer{}
		}
		if err := a.await(ctx, w, n, found); err != nil {
			return nil, a.gaveUp(ctx, last, err)
		}
	}
}

// ask asks the server once, together with others if possible. A waiter that wants a notification asks alone. It returns
// neither a lease nor an error if the lease was refused, a race was lost, or the answer came too late.
func (a *acquisition) ask(ctx context.Context, waits bool) (*Lease, *answer, error) {
	if a.m.holdings.isClosed() {
		return nil, nil, ErrClosed
	}
	listened := waits && a.m.notifications.heard()
	c := a.m.store.newClaim(a.request)
	if !listened && a.data == nil && a.slots == 0 {
		in := &call{item: item{c, a.ttl}}
		done, end, err := a.m.acquires.do(ctx, in)
		switch {
		case err != nil:
			if done { // otherwise late releases it
				a.m.returnLate(in)
			}
			return nil, nil, err
		case done && in.answer.bySlots:
			return a.askAlone(ctx, c, a.m.store.acquireSlot, listened)
		case done && !in.answer.granted():
			return nil, &in.answer, nil
		case done:
			return a.granted(c, &in.answer, in.sent), &answer{}, nil
		}
		defer end()
	}
	if a.slots > 0 {
		return a.askAlone(ctx, c, a.m.store.acquireSlot, listened)
	}
	if !listened && a.data == nil && a.m.store.sql.acquireFreed != "" && a.m.freed.take(a.place()) {
		if l, found, err := a.askAlone(ctx, c, a.m.store.acquireFreed, false); l != nil || err != nil {
			return l, found, err
		}
		c = a.m.store.newClaim(a.request) // the first claim may have been granted too late, and then is released
	}
	l, found, err := a.askAlone(ctx, c, a.m.store.acquire, listened)
	if err == nil && found.bySlots {
		return a.askAlone(ctx, c, a.m.store.acquireSlot, listened)
	}
	return l, found, err
}

// askAlone asks with the statement for one lease.
func (a *acquisition) askAlone(
	ctx context.Context, c claim, by func(context.Context, *request, claim, bool) (answer, holder.Instant, error), listened bool,
) (*Lease, *answer, error) {
	found, sent, err := by(ctx, a.request, c, listened)
	switch {
	case err != nil:
		if mayBeDone(sent, err) {
			a.seek(c)
		}
		return nil, nil, err
	case !found.granted():
		return nil, &found, nil
	}
	return a.granted(c, &found, sent), &answer{}, nil
}

// seek makes the manager look for a claim that may have been granted, in any slot, and release it.
func (a *acquisition) seek(c claim) {
	if a.slots == 0 {
		a.m.unconfirmed.add(item{c, 0}, a.ttl)
	}
	for n := range a.slots {
		a.m.unconfirmed.add(item{c.inSlot(n + 1), 0}, a.ttl)
	}
}

// granted returns the lease that an answer grants, or nil if the answer came too late.
func (a *acquisition) granted(c claim, found *answer, sent holder.Instant) *Lease {
	c = c.inSlot(found.slot)
	c.token.Number = found.number
	l := &Lease{
		m: a.m, key: a.key, claim: c, ttl: a.ttl, atLeast: a.atLeast, renews: !a.noRenewal, role: a.role,
		slot: max(found.slot-1, 0), since: sent, state: state{proof: sent},
	}
	if !a.m.holdings.add(l) {
		a.m.unconfirmed.add(item{c, 0}, a.ttl)
		return nil
	}
	return l
}

// await waits until it is worth asking again for the n-th time: until it hears of a release, the lease of the holder runs out, or a pause is over.
func (a *acquisition) await(ctx context.Context, w *waiter, n int, found *answer) error {
	most := longestPoll
	if found.marked {
		most = heardPoll
	}
	wait := most
	if !found.marked && n < 10 {
		wait = min(firstPoll<<n, most)
	}
	if found.remains > 0 {
		wait = min(wait, found.remains)
	}
	timer := time.NewTimer(holder.Jitter(wait) + time.Millisecond)
	defer timer.Stop()
	select {
	case <-w.woken:
	case <-timer.C:
	case <-a.m.background.ctx.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// ended is the error of ctx. The deadline of a connection may pass a moment before ctx ends.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	return ctx.Err()
}

// gaveUp is the error of a request that was not granted.
func (a *acquisition) gaveUp(ctx context.Context, last, err error) error {
	over := ended(ctx)
	switch {
	case holder.TimedOut(ctx):
		return leaseError(a.key, ErrLockTimeout, last, "after "+a.timeout.String())
	case over != nil:
		return cause.Add(ctx, leaseError(a.key, over, last, "not acquired"))
	case errors.Is(err, ErrClosed):
		return leaseError(a.key, explain(err), last, "")
	}
	return leaseError(a.key, explain(err), last, "not acquired")
}

func (a *acquisition) observe(ctx context.Context, l *Lease, began time.Time, err error) {
	kind, ok := holder.Outcome(ctx, err)
	if !ok || a.m.config.observer == nil {
		return // the error says nothing about the lease, or there is no observer
	}
	e := observe.Event{Kind: kind, Key: a.key.String(), Mode: "exclusive", Wait: time.Since(began), Err: err}
	if l != nil {
		e.Token = l.Token().Number
	}
	a.m.observe(ctx, e)
}

// mayBeDone reports whether a statement that ended with err may have been committed.
func mayBeDone(sent holder.Instant, err error) bool {
	return sent != holder.Instant{} && !sqlstate.TakesBack(err)
}
