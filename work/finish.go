package work

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gormlock/gormlock/internal/pgarray"
	"github.com/gormlock/gormlock/internal/sift"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/observe"
)

// outcome is the new state of a job after an attempt.
type outcome struct {
	*item
	state     string
	uncounted bool // the attempt does not count
	delay     time.Duration
	text      string // for LastError
	err       error
	kind      observe.Kind // 0: no event
	took      time.Duration
	stored    bool // stored before: only report it
	unbegun   bool // its handler did not begin
}

// judge turns the error of a handler into an outcome.
func (e *engine) judge(it *item, err error) outcome {
	o := outcome{item: it, err: err}
	if it.shared.completed.Load() {
		o.state, o.kind, o.stored = done, observe.Done, true
		return o
	}
	if err == nil && it.shared.completing.Load() {
		err = errRolledBack
		o.err = err
	}
	if err == nil && e.hasExpired(it) { // it may have returned nil because its context ended
		err = errLate
		o.err = err
	}
	if err == nil {
		o.state, o.kind = done, observe.Done
		return o
	}
	var never *deadError
	var again *laterError
	var unasked *unaskedError
	switch {
	case errors.As(err, &never):
		o.state, o.kind = dead, observe.Dead
	case errors.As(err, &again):
		o.state, o.kind, o.delay, o.uncounted = later, observe.Later, again.in, true
	case errors.Is(err, errNotBegun):
		o.state, o.uncounted, o.unbegun = ready, true, true
		return o
	case errors.As(err, &unasked):
		o.state, o.kind, o.uncounted, o.unbegun = ready, observe.Later, true, true
	case errors.Is(context.Cause(e.base), errGrace):
		o.state, o.uncounted = ready, true
		return o
	case it.attempt >= it.most:
		o.state, o.kind = dead, observe.Dead
	default:
		o.state, o.kind, o.delay = later, observe.Failed, e.pause(it.attempt)
	}
	if o.state == later && o.delay <= 0 {
		o.state = ready
	}
	o.text = storable(err.Error())
	return o
}

// pause calls Backoff, which may be the caller's code.
func (e *engine) pause(attempt int) (d time.Duration) {
	defer func() {
		if cause := recover(); cause != nil {
			d = backoff(attempt)
			e.log(e.base, "gormlock: work: Backoff panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	return e.backoff(attempt)
}

// finish stores outcomes until ctx ends. Outcomes that come while others are being stored are stored together. Those of suspects are stored last.
func (e *engine) finish(ctx context.Context) {
	for pause := time.Duration(0); ; {
		batch := e.batch()
		in, suspects := e.refused.store.due()
		if len(batch) == 0 && (!suspects || in > 0 || ctx.Err() != nil) {
			var again <-chan time.Time
			if suspects {
				again = time.After(in)
			}
			select {
			case <-ctx.Done():
				return
			case <-e.finished:
			case <-again:
			}
			continue
		}
		left, err := e.storeOthers(ctx, batch)
		if suspects = suspects || len(e.apart) > 0; err == nil && suspects && (len(batch) == 0 || e.refused.store.rested()) {
			_, err = e.search(ctx, &e.refused.store, func() int { return outcomesMost / 2 }, func(part []int64) (int, error) { return e.storeSuspects(ctx, part) })
			poke(e.signal)
		}
		e.setApart(len(e.apart))
		if err != nil && ctx.Err() == nil {
			e.log(ctx, "gormlock: work: store the outcome of %d jobs of %s: %v", len(left)+len(e.apart), e.t.name, err)
		}
		if len(left) == 0 && err == nil {
			pause = 0
			continue
		}
		e.putBack(left)
		if pause = min(max(2*pause, 20*time.Millisecond), time.Second); ctx.Err() != nil {
			return
		}
		rest(ctx, pause)
	}
}

// storeOthers stores outcomes of jobs that are not suspects, and returns those that must be tried again. Outcomes that the server refuses are kept
// apart.
func (e *engine) storeOthers(ctx context.Context, batch []outcome) (left []outcome, err error) {
	r := &e.refused.store
	bad := r.now()
	var kinds [2][]outcome
	var stored []outcome
	for _, o := range batch {
		switch _, is := slices.BinarySearch(bad, o.id); {
		case o.stored:
			stored = append(stored, o)
		case is:
			left = append(left, e.keepApart(ctx, o)...)
		default:
			kinds[o.kindOfWrite()] = append(kinds[o.kindOfWrite()], o)
		}
	}
	e.completed(ctx, stored)
	for _, part := range kinds {
		began, n := time.Now(), 0
		var more []outcome
		failed := sift.ThroughConflicts(ctx, func() (err error) {
			n, more, err = e.store(ctx, part)
			return err
		})
		if r.pass(n); sqlstate.IsOfARow(failed) {
			ids := make([]int64, 0, len(part))
			for _, o := range part {
				ids = append(ids, o.id)
				left = append(left, e.keepApart(ctx, o)...)
			}
			r.suspect(ids, failed, time.Since(began))
			continue
		}
		left, err = append(left, more...), errors.Join(err, failed)
	}
	return left, err
}

// keepApart keeps the outcome of a suspect. If it has an outcome of an earlier attempt too, the lease of that one has ended, and the two must not
// be mixed up.
func (e *engine) keepApart(ctx context.Context, o outcome) (left []outcome) {
	if before, is := e.apart[o.id]; is && before.item != o.item {
		var err error
		if left, err = e.missed(ctx, []outcome{before}); err != nil {
			return []outcome{o}
		}
	}
	e.apart[o.id] = o
	return left
}

// storeSuspects stores outcomes that are kept apart, and returns how many it stored.
func (e *engine) storeSuspects(ctx context.Context, ids []int64) (n int, err error) {
	var kinds [2][]outcome
	for _, id := range ids {
		if o, is := e.apart[id]; is {
			kinds[o.kindOfWrite()] = append(kinds[o.kindOfWrite()], o)
		}
	}
	for _, part := range kinds {
		stored, left, failed := e.store(ctx, part)
		for _, o := range part {
			delete(e.apart, o.id)
		}
		if n += stored; failed == nil {
			e.putBack(left)
			continue
		}
		err = errors.Join(err, failed)
		for _, o := range left {
			e.apart[o.id] = o
		}
	}
	return n, err
}

// kindOfWrite says which statement stores an outcome: one is for jobs that are done, the other one for all others.
func (o outcome) kindOfWrite() int {
	if o.state == done {
		return 0
	}
	return 1
}

// completed reports jobs that handlers' transactions have completed, and finds out which jobs follow them.
func (e *engine) completed(ctx context.Context, stored []outcome) {
	if e.t.one != "" && len(stored) > 0 {
		ids, _ := arrays(items(stored))
		next := "CASE WHEN NOT EXISTS (SELECT FROM {table} AS o WHERE o." + e.t.one + " = t." + e.t.one + " AND o.{State} = 'running'" + each + " THEN " + e.t.after() + " END" // a running job may be put off, and then comes first
		if there, err := e.ends(ctx, "SELECT t.{ID}, "+next+" FROM {table} AS t WHERE t.{ID} = ANY($1::bigint[])", ids); err != nil || len(there) < len(stored) {
			e.source.again()
		}
	}
	for _, o := range stored {
		e.told(o)
	}
}

// store stores outcomes of one kind in one statement. It returns how many it stored, and those that must be tried again.
func (e *engine) store(ctx context.Context, part []outcome) (n int, left []outcome, err error) {
	if len(part) == 0 {
		return 0, nil, nil
	}
	stored, err := e.write(ctx, part)
	if len(part) == 1 && sqlstate.IsOfARow(err) {
		stored, err = e.writeLess(ctx, part[0], err)
	}
	if err != nil {
		return 0, part, err
	}
	heard := hints{}
	var missing []outcome
	for _, o := range part {
		if !stored[o.id] {
			missing = append(missing, o)
			continue
		}
		switch o.state {
		case ready:
			heard.add(o.level, o.id, false)
		case later:
			heard.add(o.level, o.id, true)
		}
		e.told(o)
	}
	if len(heard) > 0 {
		e.wake(heard)
		announce(e.db.DB, e.t.quoted, heard)
	}
	if len(missing) > 0 {
		left, err = e.missed(ctx, missing)
	}
	return len(stored), left, err
}

// missed finds out why outcomes were not stored: somebody has locked the row for a moment, or another process has the job.
func (e *engine) missed(ctx context.Context, missing []outcome) (left []outcome, err error) {
	states, err := e.states(ctx, items(missing))
	if err != nil {
		return missing, err
	}
	var lost []outcome
	for _, o := range missing {
		switch state := states[o.id]; state {
		case running:
			left = append(left, o)
		case done: // by the transaction of Complete, or by a statement whose answer was lost
			o.state, o.kind, o.err = done, observe.Done, nil
			e.told(o)
		default:
			e.drop(o.item)
			if state != "" && o.kind != 0 { // the row exists, and a handler has ended
				lost = append(lost, o)
			}
		}
	}
	if len(lost) > 0 {
		e.log(ctx, "gormlock: work: the outcome of %d jobs of %s is not stored, or it was and the answer was lost; the first is job %d, %s: their leases have ended, or somebody has changed their State or ClaimedBy",
			len(lost), e.t.name, lost[0].id, lost[0].kind)
	}
	if e.t.one != "" && len(left) < len(missing) { // another job may follow one of these
		e.source.again()
	}
	return left, nil
}

func items(outcomes []outcome) []*item {
	list := make([]*item, 0, len(outcomes))
	for _, o := range outcomes {
		list = append(list, o.item)
	}
	return list
}

// told removes a job whose outcome is stored, and reports the outcome.
func (e *engine) told(o outcome) {
	e.drop(o.item)
	if o.kind != 0 {
		e.tellOf(o.id, observe.Event{Kind: o.kind, Held: o.took, Err: o.err})
	}
}

// write stores the outcomes of jobs that this process still has, and returns which jobs these are.
func (e *engine) write(ctx context.Context, part []outcome) (map[int64]bool, error) {
	ids, claims := arrays(items(part))
	var states, uncounted, delays, texts pgarray.Array
	for _, o := range part {
		states.Text(o.state)
		uncounted.Int(map[bool]int64{true: 1}[o.uncounted])
		delays.Int(o.delay.Microseconds())
		texts.Text(o.text)
	}
	if part[0].state == done {
		return e.ends(ctx, `UPDATE {table} AS t SET {State} = 'done', {ClaimedUntil} = NULL, {Version} = {Version} + 1, {UpdatedAt} = now()
			WHERE {ID} = ANY(ARRAY(SELECT t.id FROM unnest($1::bigint[], $2::text[]) AS o(id, claim)`+mine+`)) RETURNING t.{ID}, `+e.t.after(),
			ids, claims)
	}
	return e.ends(ctx, `WITH gormlock_ended AS (SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::int[], $5::bigint[], $6::text[]) AS o(id, claim, state, uncounted, delay, error)),
		gormlock_mine AS MATERIALIZED (SELECT t.id FROM gormlock_ended AS o`+mine+`)
		UPDATE {table} AS t SET {State} = o.state, {Attempts} = GREATEST(t.{Attempts} - o.uncounted, 0), {ClaimedUntil} = NULL,
			{ClaimedBy} = CASE WHEN o.state = 'dead' THEN t.{ClaimedBy} ELSE '' END,
			{RunAt} = CASE WHEN o.state = 'later' THEN clock_timestamp() + o.delay * interval '1 microsecond' ELSE t.{RunAt} END,
			{LastError} = CASE WHEN o.error = '' THEN t.{LastError} ELSE o.error END, {Version} = t.{Version} + 1, {UpdatedAt} = now()
		FROM gormlock_ended AS o, gormlock_mine AS mine WHERE t.{ID} = o.id AND t.{ID} = mine.id RETURNING t.{ID}, CASE WHEN t.{State} = 'dead' THEN `+e.t.after()+` END`,
		ids, claims, states.String(), uncounted.String(), delays.String(), texts.String())
}

// ends runs a statement that returns the IDs of jobs and, for jobs that have ended, the ID of the next job.
func (e *engine) ends(ctx context.Context, text string, args ...any) (map[int64]bool, error) {
	var id int64
	var next *int64
	var follow []int64
	found := map[int64]bool{}
	err := e.db.each(ctx, e.t.sql(text), args, []any{&id, &next}, func() {
		if found[id] = true; next != nil {
			follow = append(follow, *next)
		}
	})
	if err == nil {
		e.source.ended(follow)
	}
	return found, err
}
