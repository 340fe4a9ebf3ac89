package lease

import (
	"context"
	"database/sql"
	"time"
)

// stray is an acquisition that may be in the table although nobody holds it, or not any
// more: its statement was not answered, or its release. It is looked for until it is found
// or has run out.
type stray struct {
	listed
	next  time.Duration // when it is looked for again, on the monotonic clock
	pause time.Duration
	until time.Duration // when it will have run out
}

const (
	firstStray = 20 * time.Millisecond
	lastStray  = time.Second
	// strayWithin bounds one search.
	strayWithin = 5 * time.Second
)

// stray looks for an acquisition until it is found or has run out.
func (m *Manager) stray(it listed, ttl time.Duration) {
	m.mu.Lock()
	closed := m.closed
	if !closed {
		now := m.config.clock().mono
		m.strays = append(m.strays, &stray{listed: it, next: now, pause: firstStray, until: now + ttl})
		m.tendBy(now)
	}
	m.mu.Unlock()
	if closed { // nobody is left to do it
		ctx, cancel := context.WithTimeout(context.Background(), lastStray)
		defer cancel()
		_, _ = m.giveBack(ctx, []listed{it})
	}
}

// dueStrays returns those to look for now. It is called with mu held.
func (m *Manager) dueStrays(now instant) []*stray {
	var due []*stray
	kept := m.strays[:0]
	for _, s := range m.strays {
		if s.until < now.mono {
			continue
		}
		if s.next <= now.mono {
			s.pause = min(2*s.pause, lastStray)
			s.next = now.mono + jitter(s.pause)
			due = append(due, s)
		}
		kept = append(kept, s)
		m.dueAt = min(m.dueAt, s.next)
	}
	m.strays = kept
	return due
}

func (m *Manager) returnStrays(strays []*stray) {
	items := make([]listed, len(strays))
	for i, s := range strays {
		items[i] = s.listed
	}
	ctx, cancel := context.WithTimeout(m.ctx, strayWithin)
	defer cancel()
	there, err := m.giveBack(ctx, items)
	if err != nil {
		return // and looked for again
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]bool{}
	for _, i := range there {
		found[items[i].holder] = true
	}
	kept := m.strays[:0]
	for _, s := range m.strays {
		if found[s.holder] {
			m.wake(placeOf(s.token))
			continue
		}
		kept = append(kept, s)
	}
	m.strays = kept
}

// handBack gives one acquisition back, in company where that is possible, and reports
// whether it was there.
func (m *Manager) handBack(ctx context.Context, it listed) (there bool, err error) {
	done, land, err := m.returns.ride(ctx, &errand{listed: it})
	if done || err != nil {
		return done, err
	}
	defer land()
	found, err := m.giveBack(ctx, []listed{it})
	return len(found) > 0, err
}

// returnArgs are the parameters of releaseMany.
func (m *Manager) returnArgs(batch []*errand) []any {
	items := make([]listed, len(batch))
	for i, e := range batch {
		items[i] = e.listed
	}
	return m.listArgs(items)
}

func scanReturned(batch []*errand, rows *sql.Rows) error {
	n, err := scanReleased(rows)
	if err == nil {
		batch[n].answered = true
	}
	return err
}

// scanReleased reads which of a list was released.
func scanReleased(rows *sql.Rows) (int, error) {
	var n int
	var notified sql.NullString
	err := rows.Scan(&n, &notified)
	return n - 1, err
}

// giveBack gives acquisitions back in one statement and returns which of them were there.
func (m *Manager) giveBack(ctx context.Context, items []listed) (there []int, err error) {
	text, args := m.sql.releaseMany, m.listArgs(items)
	if len(items) == 1 {
		text, args = m.sql.release, m.releaseArgs(items[0])
	}
	for range 10 {
		there = there[:0]
		_, err = m.query(ctx, text, args, func(rows *sql.Rows) error {
			n, err := scanReleased(rows)
			there = append(there, n)
			return err
		})
		if !isRetry(err) {
			return there, err
		}
	}
	return there, err
}
