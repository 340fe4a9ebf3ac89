package lease

import (
	"context"
	"database/sql"
	"time"
)

// tendBy makes the tender look at the given time at the latest. It is called with mu held.
func (m *Manager) tendBy(at time.Duration) {
	if at < m.dueAt {
		m.dueAt = at
		select {
		case m.kick <- struct{}{}:
		default:
		}
	}
}

// idle is how long the tender sleeps when nothing is due.
const idle = time.Hour

// tending renews leases and gives strays back, until the manager ends.
func (m *Manager) tending() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.kick:
		case <-timer.C:
		}
		m.mu.Lock()
		now := m.config.clock()
		m.dueAt = now.mono + idle
		batch, told := m.dueLeases(now)
		strays := m.dueStrays(now)
		wait := m.dueAt - now.mono
		m.mu.Unlock()
		for _, tell := range told {
			tell()
		}
		if len(batch) > 0 {
			m.wg.Go(func() { m.renewDue(batch) })
		}
		if len(strays) > 0 {
			m.wg.Go(func() { m.returnStrays(strays) })
		}
		timer.Reset(max(wait, time.Millisecond))
	}
}

// dueLeases returns the leases to renew now, and those nearly due with them: renewed
// together, they stay together. It is called with mu held.
func (m *Manager) dueLeases(now instant) (batch []*Lease, told []func()) {
	due := false
	for _, l := range m.held {
		switch {
		case l.ranOut(now):
			told = append(told, m.lose(l, l.whyRanOut())) // the timer's clock may have stood still
		case l.renews:
			due = due || l.renewAt <= now.mono
		}
	}
	for _, l := range m.held {
		if !l.renews {
			continue
		}
		if due && (l.renewAt <= now.mono || !l.renewing && l.renewAt-l.ttl/6 <= now.mono) {
			l.renewing = true
			l.renewAt = now.mono + l.ttl/4 // again, beside this one, if it is not answered by then
			batch = append(batch, l)
		}
		m.dueAt = min(m.dueAt, l.renewAt)
	}
	return batch, told
}

// renewDue renews leases in one statement, and sees that what failed is asked for again
// while there is time.
func (m *Manager) renewDue(batch []*Lease) {
	within := batch[0].ttl
	for _, l := range batch {
		within = min(within, l.ttl)
	}
	ctx, cancel := context.WithTimeout(m.ctx, within/2)
	defer cancel()
	_, err := m.renewAll(ctx, batch)

	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.config.clock()
	for _, l := range batch {
		l.renewing = false
		if err != nil {
			l.renewAt = min(l.renewAt, now.mono+l.ttl/20)
		}
		if l.err == nil {
			m.tendBy(l.renewAt)
		}
	}
}

// renewAll renews leases in one statement, and loses those that the database does not
// know any more. left is how many it could not look at.
func (m *Manager) renewAll(ctx context.Context, batch []*Lease) (left int, err error) {
	items := make([]listed, len(batch))
	for i, l := range batch {
		items[i] = listed{l.claim, l.ttl}
	}
	const renewed, locked, gone = 0, 1, 2
	became := make([]int, len(batch))
	sent, err := m.query(ctx, m.sql.renew, m.listArgs(items), func(rows *sql.Rows) error {
		var n int
		var there bool
		if err := rows.Scan(&n, &there); err != nil {
			return err
		}
		became[n-1] = gone
		if there {
			became[n-1] = locked
			left++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	var told []func()
	m.mu.Lock()
	now := m.config.clock()
	for i, l := range batch {
		switch {
		case l.err != nil:
		case l.ranOut(now): // the answer came too late
			told = append(told, m.lose(l, l.whyRanOut()))
		case became[i] == gone:
			told = append(told, m.lose(l, errGone))
		case became[i] == locked:
			l.renewAt = now.mono + l.ttl/20
		default:
			l.renewed(sent, now)
		}
	}
	m.mu.Unlock()
	for _, tell := range told {
		tell()
	}
	return left, nil
}

// renewed believes in the lease from the sending of a renewal on. It is called with mu held.
func (l *Lease) renewed(sent, now instant) {
	if sent.mono > l.proof.mono {
		l.proof = sent
	}
	l.renewAt = l.proof.mono + l.ttl/3
	l.timer.Reset(l.remains(now))
}
