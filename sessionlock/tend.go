package sessionlock

import "time"

func (m *Manager) tendSoon() {
	select {
	case m.tend <- struct{}{}:
	default:
	}
}

// tending does what is due: heartbeats, the end of sessions that are silent or not
// needed, and asking again.
func (m *Manager) tending() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.tend:
		case <-timer.C:
		}
		m.mu.Lock()
		now := time.Now()
		next := now.Add(m.config.heartbeat)
		for _, s := range append([]*session(nil), m.sessions...) {
			if at := m.tendSession(s, now); at.Before(next) {
				next = at
			}
		}
		for _, due := range []struct {
			at *time.Time
			do func()
		}{{&m.pollAt, m.pollRoom}, {&m.issueAt, m.reissue}} {
			if due.at.IsZero() {
				continue
			}
			if !due.at.After(now) {
				due.do()
			} else if due.at.Before(next) {
				next = *due.at
			}
		}
		m.unlockAside() // a write that waits must not keep us from seeing that nobody answers
		timer.Reset(max(time.Until(next), time.Millisecond))
	}
}

// tendSession returns when s needs looking at again.
func (m *Manager) tendSession(s *session, now time.Time) time.Time {
	h := m.config.heartbeat
	silentAt := s.proof.Add(m.patience())
	switch {
	case !m.proven(s, now):
		m.loseSilent(s)
		return now.Add(h)
	case s.role != home && s.unused() && now.Sub(s.freeSince) >= keepFree:
		m.dismiss(s)
		return now.Add(h)
	case len(s.inflight) == 0 && now.Sub(s.sent) >= h && !m.closed:
		s.single = part{statement: beat}
		m.touch(s)
		return now.Add(h)
	}
	beatAt := s.sent.Add(h)
	if len(s.inflight) > 0 || silentAt.Before(beatAt) {
		return silentAt
	}
	return beatAt
}

// dismiss ends a session that nobody needs.
func (m *Manager) dismiss(s *session) {
	m.lose(s, errUnused)
}

// unused reports whether s neither waits nor holds nor has anything to do.
func (s *session) unused() bool {
	if len(s.inflight) > 0 || s.count > 0 || len(s.repairs) > 0 || s.waitFor != nil {
		return false
	}
	if s.role == numbers {
		return len(s.m.issues) == 0
	}
	for _, f := range s.m.free {
		if f == s {
			return true
		}
	}
	return false
}

// isWaiting reports whether s waits for a lock.
func (s *session) isWaiting() bool {
	for _, f := range s.inflight {
		for i := range f.parts {
			if f.parts[i].statement == slice {
				return true
			}
		}
	}
	return s.waitFor != nil
}
