package sessionlock

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gormlock/gormlock/sessionlock/internal/dial"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

const (
	minBackoff  = 20 * time.Millisecond
	maxBackoff  = 5 * time.Second
	flapBackoff = time.Second // before the next connection to a server that ends sessions soon
)

// errUnused ends a session that nobody needs.
var errUnused = errors.New("gormlock: not needed")

// connections are the open sessions. All reach the same run of the same server.
type connections struct {
	all       []*session
	home      *session // nil while there is none
	homeSince time.Time
	reconnect backoff // before the next home is dialled
	dialError error   // why there is no home, or no session to wait on

	dialer *dial.Dialer
	life   *lifetime
	mu     sync.Locker // core.mu, for new sessions
	outbox *outbox
	events sessionEvents
}

// sessionEvents hears of new and lost sessions, with mu held.
type sessionEvents interface {
	sessionAdded(s *session)
	sessionLost(s *session, cause error)
	homeFound()
	homeNotFound(cause error)
}

// dial opens a session that has no role in the manager yet. It is called without mu.
func (c *connections) dial(r wire.Role) (*session, error) {
	link, err := c.dialer.Dial(c.life.ctx, r)
	if err != nil {
		return nil, err
	}
	return newSession(link, r, c.outbox), nil
}

// add adds a new session, and reports false if the manager is closed. If the session reaches another server than the
// others do, the address leads elsewhere now, and the locks on the old server exclude nobody any more: add loses the old
// sessions.
func (c *connections) add(s *session) bool {
	if c.life.closed {
		c.outbox.call(func() { s.conn.Close(true) })
		return false
	}
	for _, other := range slices.Clone(c.all) {
		if other.server.ID != s.server.ID {
			c.lose(other, fmt.Errorf("gormlock: the address now leads to another server: %s, before it was %s", s.server.ID, other.server.ID))
		}
	}
	c.all = append(c.all, s)
	c.events.sessionAdded(s)
	return true
}

// addHome is add for the role Home.
func (c *connections) addHome(s *session) bool {
	if !c.add(s) {
		return false
	}
	c.home, c.homeSince, c.dialError = s, time.Now(), nil
	return true
}

// lose ends a session. Its holders are told before anybody can ask for the keys again.
func (c *connections) lose(s *session, cause error) {
	if s.dead != nil {
		return
	}
	s.dead = cause
	close(s.gone)
	c.all = slices.DeleteFunc(c.all, func(other *session) bool { return other == s })
	polite := !s.writing && (errors.Is(cause, ErrClosed) || errors.Is(cause, errUnused))
	c.outbox.call(func() { s.conn.Close(polite) })
	if s == c.home {
		c.home = nil
		if !c.life.closed {
			c.life.run(c.findHome)
		}
	}
	c.events.sessionLost(s, cause)
}

// isAlive reports whether the last proof that s lives is recent enough.
func (c *connections) isAlive(s *session, now time.Time) bool {
	return s.silence(now) < c.dialer.Silence()
}

// checkAlive is isAlive, and ends a session that is not alive.
func (c *connections) checkAlive(s *session, now time.Time) bool {
	if c.isAlive(s, now) {
		return true
	}
	c.lose(s, fmt.Errorf("%w for %s", errSilent, c.dialer.Silence()))
	return false
}

// findHome opens a new home, however long it takes. It begins at once, unless the last home was short-lived.
func (c *connections) findHome() {
	c.mu.Lock()
	if time.Since(c.homeSince) > c.dialer.Heartbeat {
		c.reconnect = 0
	}
	b := c.reconnect
	c.reconnect.next()
	c.reconnect = min(c.reconnect, backoff(flapBackoff))
	c.mu.Unlock()
	if b > 0 {
		c.life.pause(time.Duration(b))
	}
	for !c.findHomeOnce() {
		c.life.pause(b.next())
	}
}

// findHomeOnce tries once, and reports whether there is a home, or none is needed.
func (c *connections) findHomeOnce() bool {
	s, err := c.dial(wire.Home)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.dialError = err
		c.events.homeNotFound(err)
		return c.life.ctx.Err() != nil
	}
	if c.addHome(s) {
		c.events.homeFound()
	}
	return true
}

// backoff is how long the last pause was.
type backoff time.Duration

// next is a longer one.
func (b *backoff) next() time.Duration {
	*b = min(max(2**b, backoff(minBackoff)), backoff(maxBackoff))
	return time.Duration(*b)
}
