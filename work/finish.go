package work

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
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
	stored    bool // already stored: only report it
	escaped   bool // text has no letters that the server's encoding may lack
	refusal   error
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
	if err == nil {
		o.state, o.kind = done, observe.Done
		return o
	}
	var (
		never *deadError
		again *laterError
	)
	switch {
	case errors.As(err, &never):
		o.state, o.kind = dead, observe.Dead
	case errors.As(err, &again):
		o.state, o.kind, o.delay, o.uncounted = later, observe.Later, again.in, true
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

// pause calls Backoff, which may be code of the caller.
func (e *engine) pause(attempt int) (d time.Duration) {
	defer func() {
		if cause := recover(); cause != nil {
			d = backoff(attempt)
			e.log(e.base, "gormlock: work: Backoff panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	return e.backoff(attempt)
}

// storable returns what PostgreSQL can store of a text, at most 16 kB.
func storable(text string) string {
	const most = 16 << 10
	text = strings.ReplaceAll(text, "\x00", "\\x00")
	if len(text) > most {
		text = text[:most]
	}
	return cmp.Or(strings.ToValidUTF8(text, "\uFFFD"), "an error without a text")
}

// finish stores outcomes until ctx ends. Outcomes that come while others are being stored are stored together. Those that the server
// refuses are tried again each second, and do not delay the others.
func (e *engine) finish(ctx context.Context) {
	var refused []outcome
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for pause := time.Duration(0); ; {
		select {
		case <-again.C:
			refused = e.again(refused)
		default:
		}
		batch := e.batch()
		if len(batch) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-e.finished:
			case <-again.C:
				refused = e.again(refused)
			}
			continue
		}
		left, err := e.store(ctx, batch)
		left, refused = e.refusedOf(ctx, left, refused, len(batch))
		if err != nil && ctx.Err() == nil {
			e.log(ctx, "gormlock: work: store the outcome of %d jobs of %s: %v", len(left), e.t.name, err)
		}
		if len(left) == 0 {
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

// again has the first of the refused outcomes stored once more, and returns the others.
func (e *engine) again(refused []outcome) []outcome {
	n := min(len(refused), refusedMost)
	if n > 0 {
		e.putBack(refused[:n])
	}
	return refused[n:]
}

// refusedOf takes those that the server refused from the outcomes that are left, of those that were tried.
func (e *engine) refusedOf(ctx context.Context, left, refused []outcome, tried int) (others, more []outcome) {
	found := map[int64]error{}
	for _, o := range left {
		if o.refusal == nil {
			others = append(others, o)
			continue
		}
		found[o.id], o.refusal = o.refusal, nil
		refused = append(refused, o)
	}
	e.refuse(ctx, &e.refused.store, found, 0, tried > 1 && len(found) == tried)
	return others, refused
}

// store stores outcomes, and returns those that must be tried again.
func (e *engine) store(ctx context.Context, batch []outcome) (left []outcome, err error) {
	var stored, simple, others []outcome
	heard := hints{}
	for _, o := range batch {
		switch {
		case o.stored:
			stored = append(stored, o)
		case o.state == done:
			simple = append(simple, o)
		default:
			others = append(others, o)
		}
	}
	e.completed(ctx, stored)
	for _, part := range [][]outcome{simple, others} {
		if len(part) == 0 {
			continue
		}
		more, failed := e.storePart(ctx, part, heard)
		left, err = append(left, more...), errors.Join(err, failed)
	}
	if len(heard) > 0 {
		e.wake(heard)
		announce(e.db.DB, e.t.quoted, heard)
	}
	return left, err
}

// completed reports jobs that transactions of handlers have completed, and finds out what follows them.
func (e *engine) completed(ctx context.Context, stored []outcome) {
	if e.t.one != "" && len(stored) > 0 {
		ids, _ := arrays(items(stored))
		next := "CASE WHEN NOT EXISTS (SELECT FROM {table} AS o WHERE o." + e.t.one + " = t." + e.t.one + " AND o.{State} = 'running'" + each + " THEN " + e.t.after() + " END" // what runs may be put off, and then comes first
		if there, err := e.ends(ctx, "SELECT t.{ID}, "+next+" FROM {table} AS t WHERE t.{ID} = ANY($1::bigint[])", ids); err != nil || len(there) < len(stored) {
			e.source.again()
		}
	}
	for _, o := range stored {
		e.told(o)
	}
}

// storePart stores outcomes in one statement. If the server refuses that, it stores them in ever smaller parts, so the text of one job,
// or a trigger of the table, does not affect the other jobs.
func (e *engine) storePart(ctx context.Context, part []outcome, heard hints) (left []outcome, err error) {
	var stored map[int64]bool
	err = sift.ThroughConflicts(ctx, func() (err error) {
		stored, err = e.write(ctx, part)
		return err
	})
	switch {
	case err == nil:
	case !sqlstate.IsOfARow(err):
		return part, err
	case len(part) > 1:
		half := len(part) / 2
		left, err = e.storePart(ctx, slices.Clone(part[:half]), heard)
		more, failed := e.storePart(ctx, slices.Clone(part[half:]), heard)
		return append(left, more...), errors.Join(err, failed)
	case !part[0].escaped && sqlstate.Is(err, sqlstate.UntranslatableCharacter, sqlstate.CharacterNotInRepertoire):
		quoted := strconv.QuoteToASCII(part[0].text)
		part[0].escaped, part[0].text = true, quoted[1:len(quoted)-1]
		return e.storePart(ctx, part, heard)
	default:
		part[0].refusal = err
		return part, nil
	}
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
	if len(missing) == 0 {
		return nil, nil
	}
	return e.missed(ctx, missing)
}

// missed finds out why outcomes could not be stored: somebody has locked the row for a moment, or another process has the
// job.
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
			if state != "" && o.kind != 0 { // there is a row, and a handler has ended
				lost = append(lost, o)
			}
		}
	}
	if len(lost) > 0 {
		e.log(ctx, "gormlock: work: the outcome of %d jobs of %s is not stored, or it was and the answer was lost; the first is job %d, %s: their leases have ended, or somebody has changed their State or ClaimedBy",
			len(lost), e.t.name, lost[0].id, lost[0].kind)
	}
	if e.t.one != "" && len(left) < len(missing) { // something may follow
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

// told removes a job whose outcome is stored, and reports it.
func (e *engine) told(o outcome) {
	e.drop(o.item)
	if o.kind != 0 {
		e.tellOf(o.id, observe.Event{Kind: o.kind, Held: o.took, Err: o.err})
	}
}

// write stores the outcomes of jobs that this process still has, and returns which.
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

// ends runs a statement that returns the IDs of jobs, and for those that have ended the ID of the job that comes next.
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
