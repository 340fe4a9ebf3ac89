package sessionlock

// Arrivals is how many callers wait for keys, for tests that need an order.
func Arrivals(m *Manager) int {
	c := m.core
	c.Lock()
	defer c.Unlock()
	c.letIn()
	n := 0
	for _, e := range c.ledger.entries {
		for w := e.queue.first; w != nil; w = w.next {
			n++
		}
	}
	return n
}

// Tokens is how many tokens are asked for and not sent yet.
func Tokens(m *Manager) int {
	c := m.core
	c.Lock()
	defer c.Unlock()
	c.letIn()
	return len(c.issuer.waiting)
}

// Alive reports whether m believes in the session of a backend.
func Alive(m *Manager, pid int) bool {
	c := m.core
	c.Lock()
	defer c.Unlock()
	for _, s := range c.conns.all {
		if s.server.PID == pid {
			return true
		}
	}
	return false
}
