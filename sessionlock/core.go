package sessionlock

import (
	"context"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/sessionlock/internal/dial"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// core is the state that the goroutines of a manager share, and its mutex mu. All parts but the inbox and the chains
// belong to mu. They share one mutex for two reasons. One step touches several of them: an answer of the server moves
// keys in the ledger and on the waitlist, answers callers and fills the next batch of the session. And after a loss,
// every holder must know of it before anybody can ask for the keys again. Exceptions are noted at their fields: the
// goroutine that has set session.reading reads that connection without mu, and the one that has set session.writing
// writes it.
//
// A part knows only the parts that it calls. The ledger, the issuer and rivals ask the connections for a session, answer
// callers through wakeups, and put sessions that have something to send into the outbox. Core passes what comes from
// outside to the right part: callers, answers, and the end of a session. Unlocking mu involves more work: see unlock.
type core struct {
	inbox    inbox
	mu       sync.Mutex
	wakeups  wakeups
	outbox   outbox
	conns    connections
	ledger   ledger
	waitlist waitlist
	rivals   rivals
	issuer   issuer
	upkeep   upkeep
	life     *lifetime
	chains   ownChains
}

// newCore is a core without a session.
func newCore(ctx context.Context, d *dial.Dialer, c *config) *core {
	k := &core{life: newLifetime(ctx)}
	k.wakeups.own = &k.chains
	k.inbox.timer = time.AfterFunc(time.Hour, k.stopCombining)
	k.inbox.timer.Stop() // until combining begins
	k.upkeep = upkeep{changed: make(chan struct{}, 1), core: k}
	k.conns = connections{dialer: d, life: k.life, mu: k, outbox: &k.outbox, events: k}
	k.waitlist = waitlist{pool: waiterPool{limit: c.maxWaiters}, slice: maxSlice, conns: &k.conns, upkeep: &k.upkeep}
	k.rivals = rivals{ledger: &k.ledger, conns: &k.conns, waitlist: &k.waitlist}
	k.ledger = ledger{
		entries: map[holder.Place]*entry{}, limit: c.maxLocks,
		wakeups: &k.wakeups, conns: &k.conns, waitlist: &k.waitlist, rivals: &k.rivals,
		reporter: &reporter{observer: c.observer, owner: c.owner, outbox: &k.outbox, ctx: k.life.ctx},
	}
	k.issuer = issuer{wakeups: &k.wakeups, conns: &k.conns, upkeep: &k.upkeep}
	return k
}

// start makes the first session the home.
func (c *core) start(first *dial.Link) {
	c.mu.Lock()
	c.waitlist.slice = min(maxSlice, first.Server.DeadlockTimeout()*4/5)
	if c.ledger.limit == 0 {
		c.ledger.limit = first.Server.LockTable() * 4 / 5
	}
	c.conns.addHome(newSession(first, wire.Home, &c.outbox))
	c.life.run(c.upkeep.run)
	c.unlock(nil)
}

// letIn passes the callers in the inbox to the part that serves them, in the order they came. Each way to unlock mu looks
// for new callers afterwards.
func (c *core) letIn() {
	if c.inbox.isEmpty() {
		return
	}
	for w := c.inbox.takeAll(); w != nil; {
		next := c.inbox.next(w)
		switch {
		case w.gives != nil:
			c.ledger.release(w)
		case c.life.closed:
			c.wakeups.refuse(w, ErrClosed, nil)
		case w.token != nil:
			c.issuer.add(w.token)
		default:
			c.ledger.acquire(w)
		}
		w = next
	}
}

// answered passes the answers of a batch to the parts that asked.
func (c *core) answered(s *session, b *batch) {
	s.answered(b)
	for i := range b.queries {
		if s.dead != nil {
			return
		}
		switch q := &b.queries[i]; {
		case q.statement.IsUnlock():
			c.ledger.unlockAnswered(s, q)
		case q.statement.IsTry():
			c.ledger.tryAnswered(s, q)
		case q.statement.IsRivals():
			c.rivals.answered(q)
		case q.statement == wire.Wait:
			c.ledger.waitAnswered(s, q)
		case q.tokens != nil:
			c.issuer.answered(s, q)
		case q.statement == wire.UnlockAll && s.lastUnlock:
			c.life.confirm(s)
		}
	}
	s.recycle(b)
}

// sessionAdded starts a watcher for a session.
func (c *core) sessionAdded(s *session) {
	c.life.run(func() { c.watch(s) })
	c.upkeep.soon()
}

// sessionLost tells the parts that used the session.
func (c *core) sessionLost(s *session, cause error) {
	if s.lastUnlock {
		c.life.confirm(s)
	}
	switch s.role {
	case wire.Issuer:
		c.issuer.sessionLost(s, cause)
		return
	case wire.Waiter:
		c.waitlist.sessionLost(s)
	case wire.Home:
	}
	c.ledger.sessionLost(s, cause)
	c.waitlist.fill()
}

// homeFound sends the requests that waited for a home.
func (c *core) homeFound() {
	c.ledger.askAll()
	c.waitlist.pollSoon()
	c.waitlist.fill()
}

// homeNotFound refuses callers that do not wait for a home.
func (c *core) homeNotFound(cause error) { c.ledger.refuseTriesWithoutHome(cause) }

// close is Manager.Close.
func (c *core) close(ctx context.Context) error {
	c.mu.Lock()
	if c.life.closed {
		c.unlock(nil)
		return nil
	}
	c.life.closed = true
	c.life.cancel()
	c.ledger.close()
	c.issuer.failAll(ErrClosed)
	c.askLast()
	c.unlockAside() // a write may wait for longer than Close may

	err := c.life.awaitConfirmed(ctx)
	c.mu.Lock()
	for len(c.conns.all) > 0 {
		c.conns.lose(c.conns.all[0], ErrClosed)
	}
	c.inbox.timer.Stop()
	c.unlock(nil)
	return err
}

// askLast makes each session release what it holds. It skips sessions that wait for a lock.
func (c *core) askLast() {
	for _, s := range append([]*session(nil), c.conns.all...) {
		if s.role == wire.Issuer || s.role == wire.Waiter && s.isWaiting() {
			c.conns.lose(s, ErrClosed)
			continue
		}
		c.life.askLast(s)
	}
	c.life.closeIfConfirmed()
}
