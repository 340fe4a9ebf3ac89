package work

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gormlock/gormlock/internal/sift"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/observe"
)

// renew renews the leases of all jobs of this process. It pauses for a third of their length.
func (e *engine) renew(ctx context.Context) {
	for pause := e.lease / 3; ; {
		rest(ctx, pause)
		if ctx.Err() != nil {
			return
		}
		all, err := e.renewAll(ctx)
		if pause = e.lease / 3; !all { // a row was locked, or the server refused or did not answer
			pause = e.lease / 20
		}
		if err != nil && ctx.Err() == nil {
			e.log(ctx, "gormlock: work: renew leases of %s: %v", e.t.name, err)
		}
	}
}

// renewAll renews the leases in one statement, and reports whether all jobs of this process that are not completed were renewed. If a handler's
// transaction has locked the row of its job, only this job is left out, until the transaction ends. Suspects are renewed last.
func (e *engine) renewAll(ctx context.Context) (all bool, err error) {
	e.mu.Lock()
	var list []*item
	held := make(map[int64]*item, len(e.held))
	for id, it := range e.held {
		if !it.shared.completed.Load() {
			list = append(list, it)
			held[id] = it
		}
	}
	e.mu.Unlock()
	if len(list) == 0 {
		return true, nil
	}
	ctx, stop := context.WithTimeout(ctx, max(e.lease/3, 100*time.Millisecond))
	defer stop()
	renewed := make(map[int64]bool, len(list))
	if err := e.renewHeld(ctx, held, renewed); err != nil {
		return false, err
	}
	missing := list[:0]
	for _, it := range list {
		if !renewed[it.id] {
			missing = append(missing, it)
		}
	}
	if len(missing) == 0 {
		return true, nil
	}
	sent := e.proofs.clock()
	states, err := e.states(ctx, missing)
	if err != nil {
		return false, err
	}
	all = true
	for _, it := range missing {
		switch states[it.id] {
		case running:
			e.saw(it, sent)
			all = false
		case done: // this process does not know that the statement of Complete did this
			it.shared.completed.Store(true)
		default:
			if e.stillHeld(it) {
				e.lost(it)
			}
		}
	}
	return all, nil
}

// renewHeld renews the leases of the jobs in held, suspects last, and notes in renewed which it has renewed.
func (e *engine) renewHeld(ctx context.Context, held map[int64]*item, renewed map[int64]bool) error {
	renew := func(ids []int64) (int, error) {
		var these []*item
		for _, id := range ids {
			if it := held[id]; it != nil {
				these = append(these, it)
			}
		}
		if len(these) == 0 {
			return 0, nil
		}
		before := len(renewed)
		err := e.renewThese(ctx, these, renewed)
		return len(renewed) - before, err
	}
	r, began := &e.refused.renew, time.Now()
	if others := r.rest(slices.Sorted(maps.Keys(held))); len(others) > 0 {
		n := 0
		err := sift.ThroughConflicts(ctx, func() (err error) {
			n, err = renew(others)
			return err
		})
		switch {
		case sqlstate.IsOfARow(err):
			r.suspect(others, err, time.Since(began))
		case err != nil:
			return err
		}
		r.pass(n)
	}
	_, err := e.search(ctx, r, func() int { return len(held) }, renew)
	return err
}

// renewThese renews the leases of the jobs in list that this process still has.
func (e *engine) renewThese(ctx context.Context, list []*item, renewed map[int64]bool) error {
	ids, claims := arrays(list)
	sent := e.proofs.clock()
	var id int64
	done := map[int64]bool{}
	err := e.db.each(ctx, e.t.sql(`UPDATE {table} SET {ClaimedUntil} = clock_timestamp() + $3::bigint * interval '1 microsecond'
		WHERE {ID} = ANY(ARRAY(SELECT t.id FROM unnest($1::bigint[], $2::text[]) AS o(id, claim)`+mine+`)) RETURNING {ID}`),
		[]any{ids, claims, e.lease.Microseconds()}, []any{&id}, func() { done[id] = true })
	if err != nil {
		return err // rows that were returned before the error are not changed either
	}
	maps.Copy(renewed, done)
	e.proved(slices.DeleteFunc(list, func(it *item) bool { return !done[it.id] }), sent)
	return nil
}

// look regularly looks for jobs whose RunAt has come, for jobs of dead workers, and for ready jobs that claims have passed.
func (e *engine) look(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		next, err := e.lookAround(ctx)
		if err != nil && ctx.Err() == nil {
			e.log(ctx, "gormlock: work: look for jobs of %s: %v", e.t.name, err)
		}
		cost := time.Since(began)
		wait := behind
		if e.hasRoom() {
			wait = min(behind, max(e.poll, 10*cost))
		}
		timer := time.NewTimer(min(wait, next))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-e.scout:
			rest(ctx, min(cost, behind/2, next)) // so it takes at most half of the time
		}
		timer.Stop()
	}
}

func (e *engine) lookNow(ctx context.Context) error {
	_, err := e.lookAround(ctx)
	return err
}

// lookAround returns the time until the next known RunAt or end of a lease, or until suspects are tried again. A job that is still not ready some
// time after its RunAt is locked, or a trigger prevents the change. The next regular look finds it.
func (e *engine) lookAround(ctx context.Context) (next time.Duration, err error) {
	promoting, takingOver := e.promote(), e.takeOver()
	due, err := e.changeMany(ctx, promoting)
	if err == nil {
		var more bool
		more, err = e.changeMany(ctx, takingOver)
		due = due || more
	}
	if err == nil {
		err = e.source.look(ctx)
	}
	poke(e.signal)
	for _, each := range []manyJobs{promoting, takingOver} {
		if err == nil {
			err = e.changeSuspects(ctx, each)
		}
	}
	if err != nil {
		return behind, err
	}
	if due { // there may be more jobs than one statement takes
		return 0, nil
	}
	next, err = e.untilNext(ctx)
	for _, each := range []manyJobs{promoting, takingOver} {
		if in, is := each.due(); is {
			next = min(next, in)
		}
	}
	return next, err
}

// untilNext returns the time until the next known RunAt or end of a lease.
func (e *engine) untilNext(ctx context.Context) (time.Duration, error) {
	var seconds *float64
	err := e.db.QueryRowContext(ctx, e.t.sql(`SELECT EXTRACT(EPOCH FROM LEAST(
		(SELECT {RunAt} FROM {table} WHERE {State} = 'later' AND {RunAt} > now() - interval '100 milliseconds' AND {RunAt} < 'infinity'{live}`+e.refused.promote.without()+` ORDER BY {RunAt} LIMIT 1),
		(SELECT {ClaimedUntil} FROM {table} WHERE {State} = 'running' AND {ClaimedUntil} > now() AND {ClaimedUntil} < now() + interval '6 seconds'
			ORDER BY {ClaimedUntil} LIMIT 1)) - clock_timestamp())::float8`)).Scan(&seconds)
	if err != nil || seconds == nil {
		return behind, err
	}
	return time.Duration(min(max(*seconds, 0.001), behind.Seconds())*float64(time.Second)) + time.Millisecond, nil
}

// atOnce is how many jobs one statement makes ready.
const atOnce = 1000

// tellAll tells the workers of all processes that jobs are ready.
func (e *engine) tellAll(heard hints) {
	if len(heard) > 0 {
		e.source.hear(heard)
		announce(e.db.DB, e.t.quoted, heard)
		poke(e.signal)
	}
}

// promote makes jobs ready when their RunAt has come.
func (e *engine) promote() manyJobs {
	return manyJobs{refusals: &e.refused.promote, where: "{State} = 'later' AND {RunAt} <= now(){live}", order: "{RunAt}", change: func(ctx context.Context, these string) (int, error) {
		heard := hints{}
		defer func() { e.tellAll(heard) }()
		return e.hear(ctx, heard, `UPDATE {table} SET {State} = 'ready' WHERE {ID} = ANY(ARRAY(`+these+`)) RETURNING {ID}, {Queue}, {Priority}`)
	}}
}

// takeOver frees the jobs whose lease has ended, and those without one: their worker died, or cannot reach the server. If this was the job's last
// attempt, the job is dead. Soft-deleted jobs are freed too: with OnePer they would keep the other jobs of their value from running.
func (e *engine) takeOver() manyJobs {
	const text = ", {LastError} = 'attempt ' || t.{Attempts} || ': its worker died or lost its lease: ' || t.{ClaimedBy}"
	return manyJobs{&e.refused.takeOver, "{State} = 'running' AND ({ClaimedUntil} < now() OR {ClaimedUntil} IS NULL)", "{ClaimedUntil}", e.takeOverThese(text), e.takeOverThese("")}
}

// takeOverThese returns the change, which also makes the assignment in also.
func (e *engine) takeOverThese(also string) func(ctx context.Context, these string) (int, error) {
	return func(ctx context.Context, these string) (n int, err error) {
		var id int64
		var l level
		var claim, state string
		heard := hints{}
		defer func() { e.tellAll(heard) }()
		err = e.db.each(ctx, e.t.sql(`UPDATE {table} AS t SET {State} = CASE WHEN t.{Attempts} >= t.{MaxAttempts} THEN 'dead' ELSE 'ready' END,
			{ClaimedUntil} = NULL, {Version} = t.{Version} + 1, {UpdatedAt} = now()`+also+`
			WHERE {ID} = ANY(ARRAY(`+these+`)) RETURNING t.{ID}, t.{Queue}, t.{Priority}, t.{ClaimedBy}, t.{State}`), nil, []any{&id, &l.queue, &l.priority, &claim, &state}, func() {
			n++
			e.mu.Lock()
			own := e.held[id]
			e.mu.Unlock()
			if own != nil && own.claim == claim {
				e.lost(own)
			}
			e.tellOf(id, observe.Event{Kind: observe.TakenOver})
			if state == ready {
				heard.add(l, id, false)
			} else {
				e.tellOf(id, observe.Event{Kind: observe.Dead, Err: ErrTakenOver})
			}
		})
		return n, err
	}
}
