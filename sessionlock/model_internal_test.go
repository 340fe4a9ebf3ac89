package sessionlock

import (
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// modelServer is the server of a rig: it grants as PostgreSQL does, fails as it can, and has a rival of its own.
type modelServer struct {
	*rig
	random *rand.Rand
	held   map[holder.Place]map[*session]wire.Mode // nil is the rival
	over   bool                                    // no more failures, and the rival is gone
}

// TestModel plays callers, a server and its failures in an order that a seed decides. In every order, nobody holds a lock that the server gave to
// somebody else, and an exclusive lock has one holder. At the end, everybody was answered and everything is released.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		m := &modelServer{rig: newRig(t), random: rand.New(rand.NewPCG(seed, 1)), held: map[holder.Place]map[*session]wire.Mode{}}
		for range m.random.IntN(3) {
			m.addWaiter()
		}
		m.play(seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func (m *modelServer) play(seed uint64) {
	m.t.Helper()
	var callers, back []*waiter
	for range 300 {
		switch m.random.IntN(6) {
		case 0, 1:
			callers = append(callers, m.want(m.random.IntN(4), m.options))
		case 2:
			if n := len(callers); n > 0 {
				back = m.leave(callers[m.random.IntN(n)], back)
			}
		case 3:
			m.rival()
		case 4:
			m.upkeep.poll()
		default:
			m.serve()
		}
		m.check(callers)
	}
	m.over = true
	for _, sessions := range m.held {
		delete(sessions, nil)
	}
	for range 1000 { // now everybody gets an answer, and releases what it got
		for _, w := range callers {
			if w.finished {
				back = m.leave(w, back)
			}
		}
		m.rivals.askedAt = m.rivals.askedAt.Add(-pollEvery)
		m.upkeep.poll()
		m.serve()
		m.check(callers)
	}
	for _, w := range append(callers, back...) {
		if !w.finished {
			m.t.Errorf("seed %d: somebody was not answered", seed)
		}
	}
	m.empty()
	for id, sessions := range m.held {
		if len(sessions) > 0 {
			m.t.Errorf("seed %d: the server has not got %v back", seed, id)
		}
	}
}

func (m *modelServer) options(w *waiter) {
	for _, o := range []func(*waiter){shared, try, fair} {
		if m.random.IntN(3) == 0 {
			o(w)
		}
	}
}

// leave releases what w holds, or abandons it.
func (m *modelServer) leave(w *waiter, back []*waiter) []*waiter {
	switch {
	case !w.finished:
		m.ledger.abandon(w)
	case w.lock != nil && w.lock.end.err == nil:
		return append(back, m.release(w))
	}
	return back
}

// rival takes a free key, or releases one.
func (m *modelServer) rival() {
	id := holder.Place{Space: 1, ID: int64(m.random.IntN(4))}
	if _, has := m.held[id][nil]; has {
		delete(m.held[id], nil)
	} else if len(m.held[id]) == 0 {
		m.put(id, nil, wire.Exclusive)
	}
}

func (m *modelServer) put(id holder.Place, s *session, mode wire.Mode) {
	if m.held[id] == nil {
		m.held[id] = map[*session]wire.Mode{}
	}
	m.held[id][s] = mode
}

// serve makes each session send, then answers some of what is on its way, or ends a session.
func (m *modelServer) serve() {
	for _, s := range append([]*session(nil), m.conns.all...) {
		m.sent(s)
		switch {
		case s.dead != nil:
		case !m.over && m.random.IntN(40) == 0:
			m.end(s)
		case len(s.sent) > 0 && (m.over || m.random.IntN(3) > 0):
			m.do(s, s.sent[0])
			m.answers(s)
		}
	}
}

func (m *modelServer) end(s *session) {
	for _, sessions := range m.held {
		delete(sessions, s)
	}
	m.conns.lose(s, errSilent)
	if s.role == wire.Home {
		m.addHome()
	} else {
		m.addWaiter()
	}
}

func (m *modelServer) do(s *session, b *batch) {
	for i := range b.queries {
		q := &b.queries[i]
		if !m.over && m.random.IntN(12) == 0 {
			q.err = &pgconn.PgError{Code: []string{sqlstate.OutOfMemory, sqlstate.QueryCanceled}[m.random.IntN(2)]}
		}
		for _, e := range q.entries {
			if q.err != nil && m.random.IntN(2) == 0 {
				continue // the statement failed before it came to this key, or after
			}
			if !m.doOne(s, q, e.id) {
				q.refused = append(q.refused, e.id)
			}
		}
		if q.statement == wire.Wait && len(q.refused) > 0 && q.err == nil {
			q.err = &pgconn.PgError{Code: sqlstate.LockNotAvailable}
		}
	}
}

// doOne reports whether the function returns true.
func (m *modelServer) doOne(s *session, q *query, id holder.Place) bool {
	switch {
	case q.statement.IsUnlock():
		mode, has := m.held[id][s]
		if has && mode == wire.Mode(q.statement%2) {
			delete(m.held[id], s)
			return true
		}
		return false
	case q.statement.IsTry():
		return m.grant(s, q, id, wire.Mode(q.statement%2))
	case q.statement == wire.Wait:
		// L5: after an error of a wait nothing is held.
		return q.err != nil || m.grant(s, q, id, wire.Mode(q.variant%2))
	case q.statement.IsRivals():
		return m.random.IntN(2) == 0
	}
	return true
}

func (m *modelServer) grant(s *session, q *query, id holder.Place, mode wire.Mode) bool {
	if _, has := m.held[id][s]; has {
		m.t.Errorf("a session is asked for %v by statement %d though it has it", id, q.statement)
	}
	for _, other := range m.held[id] {
		if other == wire.Exclusive || mode == wire.Exclusive {
			return false
		}
	}
	m.put(id, s, mode)
	return true
}

// check compares what callers believe with what the server has.
func (m *modelServer) check(callers []*waiter) {
	m.t.Helper()
	type count struct{ exclusive, all int }
	holders := map[holder.Place]*count{}
	for _, w := range callers {
		if w.lock == nil || w.lock.end.err != nil {
			continue
		}
		if mode, has := m.held[w.id][w.lock.session]; !has || mode != w.mode {
			m.t.Errorf("somebody believes to hold %v, which the server gave to %v", w.id, m.held[w.id])
		}
		c := holders[w.id]
		if c == nil {
			c = &count{}
			holders[w.id] = c
		}
		c.all++
		if w.mode == wire.Exclusive {
			c.exclusive++
		}
	}
	for id, c := range holders {
		if c.exclusive > 0 && c.all > 1 {
			m.t.Errorf("%d hold %v, %d of them alone", c.all, id, c.exclusive)
		}
	}
}
