package inspect

import (
	"fmt"
	"strings"
)

// hint says of each request that waits what is probably wrong with it.
func (r *reader) hint() {
	for i := range r.view.Locks {
		l := &r.view.Locks[i]
		if l.Granted || l.Gone {
			continue
		}
		for _, pid := range l.Blockers {
			if b := r.view.Session(pid); b != nil && waitsForItself(l, b) {
				l.Hint = fmt.Sprintf("probably db used in place of tx: %d belongs to the same program and is idle in transaction", pid)
				break
			}
		}
	}
}

// waitsForItself reports whether a program probably waits for a transaction of its own, which it does not get on with
// because it waits: both sessions are the same program's by all that can be seen of them, and the blocker has done
// nothing since before the wait began.
func waitsForItself(l *Lock, blocker *Session) bool {
	return strings.HasPrefix(blocker.State, "idle in transaction") &&
		blocker.Application == l.Application && blocker.User == l.User &&
		blocker.Client != "" && host(blocker.Client) == host(l.Client) &&
		!l.Since.IsZero() && !blocker.StateSince.After(l.Since)
}

// host is the address of a client without its port.
func host(client string) string {
	if at := strings.LastIndexByte(client, ':'); at >= 0 {
		return client[:at]
	}
	return client
}
