package sessionlock

// outbox is what must be done when mu is unlocked: sessions that have something to send, each once, and calls.
type outbox struct {
	sessions []*session
	calls    []func()
}

// add makes the goroutine that unlocks mu send what s has to send.
func (o *outbox) add(s *session) {
	if !s.queued {
		s.queued = true
		o.sessions = append(o.sessions, s)
	}
}

// call makes the goroutine that unlocks mu call do afterwards.
func (o *outbox) call(do func()) { o.calls = append(o.calls, do) }

// takeCalls returns the calls to make.
func (o *outbox) takeCalls() []func() {
	calls := o.calls
	o.calls = nil
	return calls
}

// next returns the next batch of the sessions that have something to send. The caller writes it.
func (o *outbox) next() (*session, *batch) {
	for len(o.sessions) > 0 {
		s := o.sessions[len(o.sessions)-1]
		o.sessions = o.sessions[:len(o.sessions)-1]
		s.queued = false
		if !s.canSend() {
			continue
		}
		if b := s.nextBatch(); b != nil {
			s.writing = true
			return s, b
		}
	}
	return nil, nil
}
