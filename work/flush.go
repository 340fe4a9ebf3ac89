package work

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// drained reports whether this process only has jobs whose outcomes the server refuses to store.
func (e *engine) drained() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, it := range e.held {
		if !it.over || !e.refused.store.isAside(id) {
			return false
		}
	}
	return true
}

// flush waits until all outcomes are stored, but not for ever, because the leases end in any case. It tries the outcomes that the server has
// refused every second.
func (e *engine) flush() error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(e.base), flush)
	defer stop()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for waiting := true; waiting && !e.idle(); {
		select {
		case <-ctx.Done():
			waiting = false
		case <-e.signal:
		case <-again.C:
			e.refused.store.hurry()
			poke(e.finished)
		}
	}
	e.mu.Lock()
	left := len(e.held)
	e.mu.Unlock()
	if left == 0 {
		return nil
	}
	return errors.Join(e.refused.store.error(e.t.name),
		fmt.Errorf("gormlock: work: the outcome of %d jobs of %s could not be stored: they run again when their leases end", left, e.t.name))
}

// giveBackUnheard releases the jobs of a claim whose answer never came.
func (e *engine) giveBackUnheard() error {
	if !e.unsure {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(e.base), flush)
	defer stop()
	heard := hints{}
	_, err := e.hear(ctx, heard, `UPDATE {table} SET {State} = 'ready', {Attempts} = {Attempts} - 1, {ClaimedBy} = '', {ClaimedUntil} = NULL,
		{Version} = {Version} + 1, {UpdatedAt} = now() WHERE {State} = 'running' AND starts_with({ClaimedBy}, $1) AND {ID} <> ALL($2::bigint[]) RETURNING {ID}, {Queue}, {Priority}`,
		e.claimsBegin(), e.heldIDs())
	if err != nil {
		return fmt.Errorf("gormlock: work: jobs of %s that were claimed at the end could not be released, they run when their leases end: %w", e.t.name, err)
	}
	announce(e.db.DB, e.t.quoted, heard)
	return nil
}
