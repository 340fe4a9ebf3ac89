package lease

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/gormlock/gormlock/internal/holder"
)

// channel is the channel on which releases are notified.
const channel = "gormlock_lease"

// Listener provides a session that receives notifications, which database/sql
// cannot do. A *sessionlock.Manager is one.
type Listener interface {
	// Listen calls heard with the payload of every notification on channel, and with ""
	// whenever some may have been missed, such as after a new connection. It returns when
	// ctx ends, or with an error when it cannot go on.
	Listen(ctx context.Context, channel string, heard func(payload string)) error
}

// notifications wake waiters when a lease is released, by whichever process.
type notifications struct {
	listener   Listener // nil: no notifications
	waiters    *waiters
	background *background
	once       sync.Once
}

// heard reports whether waiters can be woken this way. It starts the listener when the first waiter comes.
func (n *notifications) heard() bool {
	if n.listener == nil {
		return false
	}
	n.once.Do(func() { n.background.start(n.listen) })
	return true
}

func (n *notifications) listen() {
	ctx := n.background.ctx
	for ctx.Err() == nil {
		// Waiters also ask from time to time, so an error here does no harm.
		_ = n.listener.Listen(ctx, channel, n.wake)
		n.background.pause(ctx, longestPoll)
	}
}

// wake wakes the waiters of the key that a payload names. An empty payload wakes all.
func (n *notifications) wake(payload string) {
	if at, ok := parsePlace(payload); ok {
		n.waiters.wake(at)
		return
	}
	n.waiters.wakeAll()
}

// parsePlace reads the payload of a notification, space:id.
func parsePlace(payload string) (holder.Place, bool) {
	space, id, _ := strings.Cut(payload, ":")
	s, err := strconv.ParseInt(space, 10, 16)
	if err != nil {
		return holder.Place{}, false
	}
	n, err := strconv.ParseInt(id, 10, 64)
	return holder.Place{Space: int16(s), ID: n}, err == nil
}
