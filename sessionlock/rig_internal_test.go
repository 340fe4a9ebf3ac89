package sessionlock

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock/internal/dial"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// rig is a core without a server: nobody reads or writes its sessions, and no session can be dialled. A test takes what they send, and answers as
// it likes. Everything runs in the goroutine of the test, so nothing locks the mutex.
type rig struct {
	*core
	t *testing.T
}

func newRig(t *testing.T) *rig {
	t.Helper()
	// A dial that takes too long is not reported: on a slow machine that would happen in the middle of a test.
	d := &dial.Dialer{Config: &pgx.ConnConfig{}, Heartbeat: time.Hour, BeforeConnect: func(context.Context, *pgx.ConnConfig) error {
		<-t.Context().Done()
		return t.Context().Err()
	}}
	r := &rig{newCore(t.Context(), d, &config{maxLocks: 1000}), t}
	r.conns.mu = &sync.Mutex{} // for dials, which never succeed
	r.conns.events = unwatched{r.core}
	t.Cleanup(func() {
		r.life.cancel()
		r.life.tasks.Wait()
	})
	r.addHome()
	return r
}

// unwatched is a core whose sessions nobody reads.
type unwatched struct{ *core }

func (unwatched) sessionAdded(*session) {}

// add adds a session with the one server.
func (r *rig) add(role wire.Role) *session {
	s := newSession(&dial.Link{Server: &dial.Server{ID: "one", PID: len(r.conns.all)}, Since: time.Now()}, role, &r.outbox)
	r.conns.all = append(r.conns.all, s)
	return s
}

func (r *rig) addHome() *session {
	s := r.add(wire.Home)
	r.conns.home = s
	r.homeFound()
	return s
}

func (r *rig) addWaiter() *session {
	s := r.add(wire.Waiter)
	r.waitlist.pool.size++
	r.waitlist.pool.limit = r.waitlist.pool.size
	r.waitlist.free = append(r.waitlist.free, s)
	r.waitlist.fill()
	return s
}

// key is the n-th key.
func key(n int) lockkey.Key { return lockkey.Int64(int64(n)) }

// waiter returns a waiter for the n-th key that has not arrived.
func (r *rig) waiter(n int, opts []func(*waiter)) *waiter {
	r.t.Helper()
	q, err := newRequest(key(n), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	w := &waiter{outcome: outcome{done: make(chan struct{}, 1)}, wanted: q.wanted, key: q.key}
	for _, o := range opts {
		o(w)
	}
	return w
}

// want returns a waiter for the n-th key that is in the ledger.
func (r *rig) want(n int, opts ...func(*waiter)) *waiter {
	r.t.Helper()
	w := r.waiter(n, opts)
	w.newLock = &Lock{m: &Manager{core: r.core}, key: w.key, mode: w.mode}
	r.ledger.acquire(w)
	return w
}

// held returns a waiter that holds the n-th key.
func (r *rig) held(n int, opts ...func(*waiter)) *waiter {
	r.t.Helper()
	w := r.want(n, opts...)
	r.yes(r.conns.home, wire.Try.For(w.id, w.mode))
	r.holds(w)
	return w
}

func shared(w *waiter) { w.mode = wire.Shared }
func try(w *waiter)    { w.try = true }
func fair(w *waiter)   { w.fair = true }

// release returns a waiter for the release of w's lock.
func (r *rig) release(w *waiter) *waiter {
	back := &waiter{outcome: outcome{done: make(chan struct{}, 1)}, gives: w.lock}
	r.ledger.release(back)
	return back
}

// sent takes what s sends next, or nil.
func (r *rig) sent(s *session) *batch {
	before := len(s.sent)
	if s.queued = false; s.canSend() {
		s.nextBatch()
	}
	if len(s.sent) == before {
		return nil
	}
	return s.sent[before]
}

// asks takes what s sends, which must be one query of a statement.
func (r *rig) asks(s *session, st wire.Statement) *query {
	r.t.Helper()
	b := r.sent(s)
	if b == nil || len(b.queries) != 1 || b.queries[0].statement != st {
		r.t.Fatalf("sends %s, want one query of statement %d", b, st)
	}
	return &b.queries[0]
}

// asksFor is asks for a number of keys.
func (r *rig) asksFor(keys int, s *session, st wire.Statement) *query {
	r.t.Helper()
	q := r.asks(s, st)
	if len(q.entries) != keys {
		r.t.Fatalf("asks for %d keys, want %d", len(q.entries), keys)
	}
	return q
}

// answers answers the oldest batch of s. The test has set the result of each query.
func (r *rig) answers(s *session) { r.answered(s, s.sent[0]) }

// yes makes s send a query of a statement, and the server executes it.
func (r *rig) yes(s *session, st wire.Statement) {
	r.t.Helper()
	r.asks(s, st)
	r.answers(s)
}

// no makes s send a query of a statement, and the server refuses it for all its keys.
func (r *rig) no(s *session, st wire.Statement) {
	r.t.Helper()
	q := r.asks(s, st)
	for _, e := range q.entries {
		q.refused = append(q.refused, e.id)
	}
	r.answers(s)
}

// fails makes s send a query of a statement, and the server answers with an error.
func (r *rig) fails(s *session, st wire.Statement, code string) {
	r.t.Helper()
	r.asks(s, st).err = &pgconn.PgError{Code: code}
	r.answers(s)
}

// polls makes the home send its poll, and the server executes it.
func (r *rig) polls(st wire.Statement) {
	r.t.Helper()
	r.upkeep.poll()
	r.yes(r.conns.home, st)
}

func (r *rig) silent(s *session) {
	r.t.Helper()
	if b := r.sent(s); b != nil {
		r.t.Fatalf("sends %s, want nothing", b)
	}
}

func (r *rig) empty() {
	r.t.Helper()
	if n := len(r.ledger.entries); n > 0 {
		r.t.Errorf("%d keys are left in the ledger", n)
	}
	if n := len(r.waitlist.keys); n > 0 {
		r.t.Errorf("%d keys are left on the waitlist", n)
	}
	if free, all := len(r.waitlist.free), r.waitlist.pool.size; free != all {
		r.t.Errorf("%d of %d sessions to wait on are free", free, all)
	}
}

// is fails the test unless w got this answer: nil is the lock, or that it was released.
func (r *rig) is(w *waiter, what string, want func(error) bool) {
	r.t.Helper()
	if !w.finished || !want(w.err) {
		r.t.Fatalf("finished %v with %v and %v, want %s", w.finished, w.lock, w.err, what)
	}
}

func (r *rig) holds(all ...*waiter) {
	r.t.Helper()
	for _, w := range all {
		r.is(w, "the lock", func(err error) bool { return err == nil && w.lock != nil && w.lock.end.err == nil })
	}
}

func (r *rig) waits(all ...*waiter) {
	r.t.Helper()
	for _, w := range all {
		if w.finished {
			r.t.Fatalf("finished with %v and %v, want to wait", w.lock, w.err)
		}
	}
}

func (b *batch) String() string {
	if b == nil {
		return "nothing"
	}
	text := fmt.Sprintf("%d queries:", len(b.queries))
	for _, q := range b.queries {
		text += fmt.Sprintf(" %d of %d keys", q.statement, len(q.entries))
	}
	return text
}
