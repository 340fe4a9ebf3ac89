package sessionlock

import (
	"slices"
	"time"

	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// keepFree is how long a session for waiting is kept while it waits for nothing.
const keepFree = 10 * time.Second

// upkeep does what is due: it sends heartbeats, ends sessions that are silent or not needed, and asks again for keys.
type upkeep struct {
	changed chan struct{}
	core    *core // it uses all parts
}

// soon makes run look earlier than it planned.
func (u *upkeep) soon() {
	select {
	case u.changed <- struct{}{}:
	default:
	}
}

// run runs until the manager is closed.
func (u *upkeep) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-u.core.life.ctx.Done():
			return
		case <-u.changed:
		case <-timer.C:
		}
		u.core.mu.Lock()
		next := u.doDue(time.Now())
		u.core.unlockAside() // a write that waits must not delay noticing that nobody answers
		timer.Reset(max(time.Until(next), time.Millisecond))
	}
}

// doDue does what is due, and returns when something is due again.
func (u *upkeep) doDue(now time.Time) time.Time {
	c := u.core
	next := now.Add(c.conns.dialer.Heartbeat)
	for _, s := range slices.Clone(c.conns.all) {
		if at := u.session(s, now); at.Before(next) {
			next = at
		}
	}
	for _, due := range []struct {
		at *time.Time
		do func()
	}{{&c.waitlist.pollAt, u.poll}, {&c.issuer.retryAt, c.issuer.retry}} {
		if due.at.IsZero() {
			continue
		}
		if !due.at.After(now) {
			due.do()
		} else if due.at.Before(next) {
			next = *due.at
		}
	}
	return next
}

// poll asks for the keys that wait without a session, and whether other processes want keys that are held in shared mode.
func (u *upkeep) poll() {
	c := u.core
	c.waitlist.pollAt = time.Time{}
	if c.conns.home != nil { // otherwise a new home polls
		c.rivals.poll()
		c.waitlist.poll()
	}
}

// session returns when s must be looked at again.
func (u *upkeep) session(s *session, now time.Time) time.Time {
	c := &u.core.conns
	h := c.dialer.Heartbeat
	switch {
	case !c.checkAlive(s, now):
		return now.Add(h)
	case s.role != wire.Home && now.Sub(s.freeAt) >= keepFree && u.isUnused(s):
		c.lose(s, errUnused)
		return now.Add(h)
	case len(s.sent) == 0 && now.Sub(s.sentAt) >= h && !c.life.closed:
		s.command(wire.Beat)
		return now.Add(h)
	}
	silentAt, beatAt := s.provenAt.Add(c.dialer.Silence()), s.sentAt.Add(h)
	if len(s.sent) > 0 || silentAt.Before(beatAt) {
		return silentAt
	}
	return beatAt
}

// isUnused reports whether s neither waits nor holds nor has anything to do.
func (u *upkeep) isUnused(s *session) bool {
	if s.isBusy() {
		return false
	}
	if s.role == wire.Issuer {
		return len(u.core.issuer.waiting) == 0
	}
	return slices.Contains(u.core.waitlist.free, s)
}
