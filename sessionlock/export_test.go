package sessionlock

import "time"

// Arrivals is how many wait for keys, for tests that need them in order.
func Arrivals(m *Manager) int {
	m.mu.Lock()
	defer m.unlock(nil)
	m.letIn()
	n := 0
	for _, e := range m.ledger {
		for w := e.queue.first; w != nil; w = w.next {
			n++
		}
	}
	return n
}

// Tokens is how many tokens are asked for and not sent yet.
func Tokens(m *Manager) int {
	m.mu.Lock()
	defer m.unlock(nil)
	m.letIn()
	return len(m.issues)
}

// Proof is when the last message was sent whose answer proves that the session of l lived.
func Proof(l *Lock) time.Time {
	l.m.mu.Lock()
	defer l.m.unlock(nil)
	return l.s.proof
}

// Alive reports whether m believes in the session of a backend.
func Alive(m *Manager, pid int) bool {
	m.mu.Lock()
	defer m.unlock(nil)
	for _, s := range m.sessions {
		if s.pid == pid {
			return true
		}
	}
	return false
}
