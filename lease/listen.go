package lease

import (
	"context"
	"strconv"
	"strings"

	"github.com/gormlock/gormlock/fence"
)

// channel is where releases are notified of.
const channel = "gormlock_lease"

// Listener lends a session that hears notifications, which database/sql cannot. A
// *sessionlock.Manager is one.
type Listener interface {
	// Listen calls heard with the payload of every notification on channel, and with ""
	// whenever some may have been missed, such as after a new connection. It returns when
	// ctx ends, or with an error when it cannot go on.
	Listen(ctx context.Context, channel string, heard func(payload string)) error
}

// place is a key as a place to stand in line, and to look holders up.
type place struct {
	space int16
	id    int64
}

func placeOf(t fence.Token) place { return place{t.Space, t.ID} }

// hears reports whether waiters can be notified.
func (m *Manager) hears() bool { return m.config.listener != nil && !m.config.shedlock }

// listening starts the listener when the first waiter comes, and reports whether there is
// one. It is called with mu held.
func (m *Manager) listening() bool {
	if !m.hears() {
		return false
	}
	if m.listens || m.closed {
		return m.listens
	}
	m.listens = true
	m.wg.Go(func() {
		for m.ctx.Err() == nil {
			// Whoever waits asks again from time to time, whatever becomes of this.
			_ = m.config.listener.Listen(m.ctx, channel, m.heard)
			m.pause(m.ctx, longestPoll)
		}
	})
	return true
}

// heard wakes those who wait for the key that a payload names; without a name, all.
func (m *Manager) heard(payload string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, ok := parsePlace(payload); ok {
		m.wake(at)
		return
	}
	for at := range m.lines {
		m.wake(at)
	}
}

// parsePlace reads the payload of a notification, space:id.
func parsePlace(payload string) (place, bool) {
	space, id, _ := strings.Cut(payload, ":")
	s, err := strconv.ParseInt(space, 10, 16)
	if err != nil {
		return place{}, false
	}
	n, err := strconv.ParseInt(id, 10, 64)
	return place{int16(s), n}, err == nil
}
