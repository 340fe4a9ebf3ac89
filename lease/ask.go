package lease

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// holderLength is how long the name of an acquisition is: 80 bits of chance.
const holderLength = 16

// refusal is what an answer says that grants nothing.
type refusal struct {
	owner   *string // nil when the answer does not say
	remains time.Duration
	marked  bool // the release will be notified
}

func (r *refusal) String() string {
	return fmt.Sprintf("%q holds it for %s if it is not renewed", *r.owner, r.remains)
}

// ask asks once, in company where that is possible. Who waits and listens asks alone.
func (m *Manager) ask(ctx context.Context, r *request, listen bool) (*Lease, *refusal, error) {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil, nil, ErrClosed
	}
	text := m.sql.acquire
	if listen && m.listening() {
		text = m.sql.acquireListened
	}
	m.mu.Unlock()

	c := claim{token: r.token, row: r.row, holder: rand.Text()[:holderLength]}
	if m.config.shedlock {
		c.holder = m.config.owner + holderMark + c.holder
	}
	if text == m.sql.acquire && r.data == nil {
		e := &errand{listed: listed{c, r.ttl}}
		done, land, err := m.asks.ride(ctx, e)
		switch {
		case err != nil:
			if done { // else tooLate sees to it
				m.tooLate(e)
			}
			return nil, nil, err
		case done && e.token.Number == 0:
			return nil, &e.refusal, nil
		case done:
			return m.granted(r, e.claim, e.sent), &refusal{}, nil
		}
		defer land()
	}
	return m.askAlone(ctx, r, c, text)
}

func (m *Manager) askAlone(ctx context.Context, r *request, c claim, text string) (*Lease, *refusal, error) {
	ref := &refusal{}
	sent, err := m.query(ctx, text, m.acquireArgs(r, c), func(rows *sql.Rows) error {
		var owner string
		var remains int64
		if err := rows.Scan(&c.token.Number, &owner, &remains, &ref.marked); err != nil {
			return err
		}
		if c.token.Number == 0 {
			if m.config.shedlock {
				owner = shedlockOwner(owner)
			}
			ref.owner, ref.remains = &owner, time.Duration(remains)*time.Microsecond
		}
		return nil
	})
	if err != nil {
		if mayBeDone(sent, err) {
			m.stray(listed{c, 0}, r.ttl)
		}
		return nil, nil, err
	}
	if c.token.Number == 0 {
		return nil, ref, nil
	}
	return m.granted(r, c, sent), ref, nil
}

// askArgs are the parameters of acquireMany.
func (m *Manager) askArgs(batch []*errand) []any {
	names := strings.Builder{}
	for i, e := range batch {
		names.WriteByte("{,"[min(i, 1)])
		writeQuoted(&names, e.token.Name)
	}
	if len(batch) == 0 {
		names.WriteByte('{')
	}
	return append(m.returnArgs(batch), names.String()+"}", m.config.owner)
}

func scanAsked(batch []*errand, rows *sql.Rows) error {
	var n int
	var at place
	var token, remains int64
	var owner string
	if err := rows.Scan(&n, &at.space, &at.id, &token, &owner, &remains); err != nil {
		return err
	}
	if n > 0 {
		batch[n-1].answered = true
		batch[n-1].refusal = refusal{owner: &owner, remains: time.Duration(remains) * time.Microsecond}
		return nil
	}
	for _, e := range batch {
		if placeOf(e.token) == at {
			e.answered, e.token.Number = true, token
		}
	}
	return nil
}

// tooLate gives back what was granted to somebody who has left.
func (m *Manager) tooLate(e *errand) {
	if e.token.Number != 0 || e.err != nil && mayBeDone(e.sent, e.err) {
		m.stray(listed{e.claim, 0}, e.span)
	}
}

// mayBeDone reports whether a statement that ended with err may have been committed.
func mayBeDone(sent instant, err error) bool {
	state := sqlState(err)
	return sent != instant{} && (state == "" || strings.HasPrefix(state, "57") || strings.HasPrefix(state, "08"))
}

// granted makes a lease of an answer, or nil when it came too late to be believed.
func (m *Manager) granted(r *request, c claim, sent instant) *Lease {
	l := &Lease{m: m, key: r.key, claim: c, ttl: r.ttl, atLeast: r.atLeast, renews: !r.noRenewal, since: sent, proof: sent}
	m.mu.Lock()
	now := m.config.clock()
	if m.closed || l.ranOut(now) {
		m.mu.Unlock()
		m.stray(listed{c, 0}, r.ttl)
		return nil
	}
	tell := func() {}
	if old := m.held[l.place()]; old != nil {
		tell = m.lose(old, errTaken) // before anybody hears of the new one
	}
	m.held[l.place()] = l
	l.timer = time.AfterFunc(l.remains(now), l.runOut)
	l.renewAt = sent.mono + l.ttl/3
	m.tendBy(l.renewAt)
	m.mu.Unlock()
	tell()
	return l
}
