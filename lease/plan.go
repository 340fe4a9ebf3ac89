package lease

import "time"

// progress is the row of a schedule: which ticks are done, and what happens to the current one.
type progress struct {
	now      time.Time // by the database
	settled  time.Time // all ticks up to this one are done, given up or skipped
	tick     time.Time // was begun and is not settled; zero: none
	attempts int       // runs of it that were begun
	retryAt  time.Time // when it may be begun again
	problem  string    // of the last run that failed
	next     time.Time // as it was stored for people
	token    int64     // of the last run that began
}

// plan is what is to be done next.
type plan struct {
	at       time.Time // when to look again; zero: now
	tick     time.Time // to be begun
	settle   time.Time // ticks up to this time are skipped with it
	after    time.Time // the next tick, for people
	giveUp   bool      // tick has used up its tries
	awaiting time.Time // the tick that is waited for, when it has not come yet
}

// plan returns what is to be done next. awaited is the tick for which this process was already waiting before it came:
// this tick is on time, and not missed.
func (e *every) plan(p *progress, awaited time.Time) (plan, error) {
	if !p.tick.IsZero() {
		switch {
		case p.attempts >= e.tries:
			return plan{tick: p.tick, giveUp: true}, nil
		case p.retryAt.After(p.now):
			return plan{at: p.retryAt}, nil
		}
		return plan{tick: p.tick}, nil
	}
	first, err := nextTick(e.schedule, p.settled)
	switch {
	case err != nil:
		return plan{}, err
	case first.After(p.now):
		return plan{at: first, awaiting: first}, nil
	case e.missed == RunAll:
		return plan{tick: first}, nil
	}
	last := e.lastTwo(first, p.now)
	if e.missed == Skip && (!last.tick.Equal(awaited) || p.now.Sub(awaited) > e.ttl) {
		// Do not write that it was missed: another process may have been waiting for the tick, and be about to begin it.
		next, err := nextTick(e.schedule, last.tick)
		return plan{at: next, awaiting: next}, err
	}
	return last, nil
}

// lastTwo plans the last tick that is not after now, given an earlier one, and skips those between. It continues where
// its last search ended: to search a month of a schedule of seconds takes seconds, and a search from the start would
// always be late for the next tick.
func (e *every) lastTwo(first, now time.Time) plan {
	from := first
	if e.searched.first.Equal(first) && !e.searched.last.After(now) {
		from = e.searched.last
	}
	last := lastTick(e.schedule, from, now)
	e.searched.first, e.searched.last = first, last
	if last.Equal(first) {
		return plan{tick: last}
	}
	return plan{tick: last, settle: last.Add(-resolution)}
}
