package inspect

import (
	"fmt"
	"slices"
	"strings"
)

// hint adds to each waiting request what is probably wrong with it.
func (r *reader) hint() {
	queue := map[int][]*Lock{} // the requests that wait for a session, directly or after others
	for i := range r.view.Locks {
		if l := &r.view.Locks[i]; !l.Granted && !l.Gone {
			for _, pid := range l.Blockers {
				queue[pid] = append(queue[pid], l)
			}
		}
	}
	for _, blocker := range r.view.Sessions {
		if !strings.HasPrefix(blocker.State, "idle in transaction") {
			continue
		}
		// Breadth first: those that wait for blocker directly come first.
		behind := map[int]int{blocker.PID: 0}
		for next := []int{blocker.PID}; len(next) > 0; next = next[1:] {
			for _, l := range queue[next[0]] {
				if _, seen := behind[l.PID]; seen {
					continue
				}
				behind[l.PID] = next[0]
				next = append(next, l.PID)
				if waitsForItself(l, blocker) && (l.Hint == "" || next[0] == blocker.PID && !slices.Contains(l.Blockers, l.HintPID)) {
					l.Hint, l.HintPID = itself(l, blocker, next[0]), blocker.PID
				}
			}
		}
	}
}

// itself is the text for a program that probably waits for its own transaction. It names who is between them.
func itself(l *Lock, blocker *Session, behind int) string {
	text := "probably db used in place of tx"
	who := "belongs to the same program and is idle in transaction"
	if l.Application == "" {
		text += ", or another program here that sets no application_name either"
		who = "is idle in transaction"
	}
	if behind == blocker.PID {
		return fmt.Sprintf("%s: %d %s", text, blocker.PID, who)
	}
	return fmt.Sprintf("%s: behind %d it waits for %d, which %s", text, behind, blocker.PID, who)
}

// waitsForItself reports whether a program probably waits for a transaction of its own, which it cannot end
// because it waits. It does so if both sessions seem to belong to the same program, and the blocker has done
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
