package sessionlock

import (
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/sessionlock/internal/dial"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// idle is the length of silence after which the watcher reads instead of the callers.
const idle = 5 * time.Millisecond

// smallBatch is the number of keys from which a batch is too large for a small second batch to follow it.
const smallBatch = 4

// session is one connection of a manager. It belongs to core.mu, with two exceptions: the goroutine that set reading
// reads, and the one that set writing writes.
type session struct {
	role   wire.Role
	server *dial.Server
	conn   *wire.Conn
	outbox *outbox
	tokens *issuer // for a session of the role Issuer, otherwise nil

	todo
	traffic
	pulse
	sessionEnd
	watcher chan struct{} // wakes it
}

// todo is what a session has to send.
type todo struct {
	listed     [wire.Listed][]*entry // by statement
	unused     []*entry              // empty, for the next of them
	keys       int                   // of listed
	repairs    []query               // sent first
	waitFor    *entry
	waitAtMost time.Duration
	control    wire.Statement // Beat or UnlockAll, 0 for none
	queued     bool           // in the outbox
}

// traffic are the batches that were sent.
type traffic struct {
	sent             []*batch // not answered yet, oldest first
	spare            *batch   // empty, for the next one
	reading, writing bool
}

// pulse is when a session was last heard of.
type pulse struct {
	sentAt   time.Time // the last batch
	provenAt time.Time // when the last batch that was answered was sent
	freeAt   time.Time // when it was last in use, of the roles Waiter and Issuer
}

// silence is the time since the last proof that the session lives. It looks at the wall clock too, because the monotonic
// clock stops while the machine sleeps.
func (p *pulse) silence(now time.Time) time.Duration {
	return holder.At(now).Since(holder.At(p.provenAt))
}

// sessionEnd is how a session ends.
type sessionEnd struct {
	dead       error
	gone       chan struct{} // closed when dead
	lastUnlock bool          // asked for UnlockAll, not answered
}

func newSession(l *dial.Link, r wire.Role, o *outbox) *session {
	return &session{
		role: r, server: l.Server, conn: l.Conn, outbox: o,
		pulse:      pulse{sentAt: l.Since, provenAt: l.Since},
		sessionEnd: sessionEnd{gone: make(chan struct{})},
		watcher:    make(chan struct{}, 1),
	}
}

// ask asks s for a statement with a list of keys, and adds e to the list.
func (s *session) ask(st wire.Statement, e *entry) {
	s.listed[st] = append(s.listed[st], e)
	s.keys++
	s.outbox.add(s)
}

// repair asks s for a query before all others.
func (s *session) repair(q query) {
	s.repairs = append(s.repairs, q)
	s.outbox.add(s)
}

// wait makes s wait for e in the server's queue, at most for the given time.
func (s *session) wait(e *entry, limit time.Duration) {
	s.waitFor, s.waitAtMost = e, limit
	s.outbox.add(s)
}

// command asks s for Beat or UnlockAll.
func (s *session) command(st wire.Statement) {
	s.control = st
	s.outbox.add(s)
}

func (s *session) canSend() bool {
	if s.dead != nil || s.writing {
		return false
	}
	tokens := 0
	if s.tokens != nil {
		tokens = len(s.tokens.waiting)
	}
	switch len(s.sent) {
	case 0:
		return s.keys > 0 || len(s.repairs) > 0 || s.waitFor != nil || s.control != 0 || tokens > 0
	case 1:
		return s.keys >= secondBatch || s.keys > 0 && s.sent[0].keys < smallBatch || tokens >= secondBatch
	}
	return false
}

// nextBatch returns what s has to send next. nil means that it is not wanted any more.
func (s *session) nextBatch() *batch {
	b := s.spare
	if s.spare = nil; b == nil {
		b = &batch{}
	}
	n := min(len(s.repairs), maxRepairs)
	b.queries, b.at, b.sentAt = append(b.queries[:0], s.repairs[:n]...), 0, time.Now()
	s.repairs = s.repairs[n:]
	b.keys = s.takeListed(b)
	if e := s.waitFor; e != nil {
		s.waitFor = nil
		b.queries = append(b.queries, query{
			statement: wire.Wait, entries: []*entry{e}, variant: wire.Unlock.For(e.id, e.mode), limit: e.waitLimit(s.waitAtMost, holder.At(b.sentAt)),
			before: e.before(b.sentAt),
		})
	}
	if s.control != 0 {
		b.queries = append(b.queries, query{statement: s.control})
		s.control = 0
	}
	if s.tokens != nil {
		if q, ok := s.tokens.next(); ok {
			b.queries = append(b.queries, q)
		}
	}
	if len(b.queries) == 0 {
		return nil
	}
	s.sent = append(s.sent, b)
	s.sentAt = b.sentAt
	return b
}

// takeListed adds the statements with lists to b, and returns how many keys they have.
func (t *todo) takeListed(b *batch) int {
	room := maxKeys
	for st, entries := range t.listed {
		n := min(len(entries), room)
		if n == 0 {
			continue
		}
		b.queries = append(b.queries, query{statement: wire.Statement(st), entries: entries[:n:n]})
		if t.listed[st] = entries[n:]; n == len(entries) {
			t.listed[st], t.unused = t.unused, nil
		}
		t.keys -= n
		room -= n
	}
	return maxKeys - room
}

// answered removes a batch that was answered.
func (s *session) answered(b *batch) {
	s.sent = s.sent[:copy(s.sent, s.sent[1:])]
	s.provenAt = b.sentAt
	s.outbox.add(s)
}

// recycle keeps a batch and the longest of its lists for the next one. The list of a query that failed is still in use.
func (s *session) recycle(b *batch) {
	for i := range b.queries {
		q := &b.queries[i]
		if q.statement < wire.Listed && q.err == nil && cap(q.entries) > cap(s.unused) {
			clear(q.entries)
			s.unused = q.entries[:0]
		}
	}
	clear(b.queries)
	s.spare = b
}

// isWaiting reports whether s waits for a lock.
func (s *session) isWaiting() bool {
	for _, b := range s.sent {
		if b.isWait() {
			return true
		}
	}
	return s.waitFor != nil
}

// isBusy reports whether s has anything to do, apart from what it holds.
func (s *session) isBusy() bool {
	return len(s.sent) > 0 || s.keys > 0 || len(s.repairs) > 0 || s.waitFor != nil
}

// wake makes the watcher look.
func (s *session) wake() {
	select {
	case s.watcher <- struct{}{}:
	default:
	}
}
