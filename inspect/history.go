package inspect

import (
	"context"
	"database/sql"
	"time"

	"github.com/gormlock/gormlock/inspect/internal/page"
)

// Sample is what the page saw at one look. A wait that began and ended between two looks is in no Sample.
type Sample struct {
	Taken   time.Time     `json:"taken"`
	Waiting int           `json:"waiting"`
	Begun   float64       `json:"waits_per_second"` // requests that began to wait since the look before
	Longest time.Duration `json:"longest_wait_ns"`
	GaveUp  int           `json:"gave_up"`       // requests that ended without the lock since the look before: timeouts and cancels
	Gap     bool          `json:"gap,omitempty"` // there was no look before, or it failed
}

// history is the samples of the last minutes.
type history struct {
	samples []Sample
	before  *View
}

func (h *history) list() []Sample { return append([]Sample{}, h.samples...) }

// gap notes that a look at the database failed.
func (h *history) gap() { h.before = nil }

// add adds a view, and what gaveUp counted in it.
func (h *history) add(v *View, gaveUp int) {
	s := Sample{Taken: v.Taken, Waiting: v.Totals.Waiting, GaveUp: gaveUp, Gap: h.before == nil}
	for _, l := range v.Locks {
		if l.Granted || l.Since.IsZero() {
			continue
		}
		s.Longest = max(s.Longest, v.Taken.Sub(l.Since))
		if h.before != nil && l.Since.After(h.before.Taken) {
			s.Begun++
		}
	}
	if h.before != nil {
		s.Begun /= max(v.Taken.Sub(h.before.Taken).Seconds(), 0.001)
	}
	h.before = v
	h.samples = append(h.samples, s)
	for v.Taken.Sub(h.samples[0].Taken) > page.Kept {
		h.samples = h.samples[1:]
	}
}

// claim says who asks for or holds which lock.
type claim struct {
	pid   int
	thing string
}

// gaveUp counts the requests that waited in before and do not wait now, although a holder of
// what they want still holds it. Such requests timed out, were cancelled or were ended.
func gaveUp(ctx context.Context, db *sql.DB, before, now *View) (int, error) {
	if before == nil {
		return 0, nil
	}
	waits := map[claim]time.Time{}
	for _, l := range now.Locks {
		if !l.Granted {
			waits[claim{l.PID, l.Thing}] = l.Since
		}
	}
	ended := map[string][]int{} // by thing: the sessions that no longer wait for it
	for _, l := range before.Locks {
		if since, same := waits[claim{l.PID, l.Thing}]; !l.Granted && (!same || !since.Equal(l.Since)) {
			ended[l.Thing] = append(ended[l.Thing], l.PID)
		}
	}
	var holders []int
	holds := map[string]int{}
	for _, l := range before.Locks {
		if l.Granted && l.Mode != "shared" && ended[l.Thing] != nil {
			holders = append(holders, l.PID)
			holds[l.Thing] = l.PID
		}
	}
	if len(holders) == 0 {
		return 0, nil
	}
	held, err := heldBy(ctx, db, holders)
	count := 0
	for thing, holder := range holds {
		if held[claim{holder, thing}] {
			count += len(ended[thing])
		}
	}
	return count, err
}

// heldBy is everything that the sessions hold.
func heldBy(ctx context.Context, db *sql.DB, sessions []int) (map[claim]bool, error) {
	rows, err := db.QueryContext(ctx, heldSQL, pidArray(sessions))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	held := map[claim]bool{}
	for rows.Next() {
		var c claim
		if err := rows.Scan(&c.pid, &c.thing); err != nil {
			return nil, err
		}
		held[c] = true
	}
	return held, rows.Err()
}
