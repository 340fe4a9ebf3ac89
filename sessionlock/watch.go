package sessionlock

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// watch reads while no caller does, until s is dead.
func (s *session) watch() {
	m := s.m
	timer := time.NewTimer(idle)
	defer timer.Stop()
	kicked := false
	m.mu.Lock()
	for s.dead == nil {
		quiet := time.Since(s.sent) >= idle
		if !s.reading && (kicked && len(s.inflight) > 0 || quiet) {
			s.reading = true
			m.unlock(s)
			m.read(context.Background(), s)
			kicked = len(s.inflight) > 0 // go on: there is more to read at once
			continue
		}
		m.unlock(nil)
		timer.Reset(idle)
		select {
		case <-s.kick:
			kicked = true
		case <-timer.C:
		case <-s.gone:
		}
		m.mu.Lock()
	}
	m.unlock(nil)
}

// read reads until a flight has been answered, ctx ended or the session died. The
// caller has set s.reading and does not hold mu; read returns with mu held and
// s.reading false.
func (m *Manager) read(ctx context.Context, s *session) {
	var f *flight
	for {
		message, err := s.reader.Receive()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			// An interrupt, of this caller or of one that has left by now. The deadline is
			// cleared first: an interrupt between the two lines is seen by the second.
			err = s.conn.SetReadDeadline(time.Time{})
			if err == nil && ctx.Err() == nil {
				continue
			}
		case err == nil:
			err = fatal(message)
		}
		if err == nil && message != nil {
			if f == nil {
				if f = m.front(s); f == nil {
					continue
				}
			}
			var done bool
			if done, err = f.take(message); err == nil && !done {
				continue
			}
		}
		m.mu.Lock()
		s.reading = false
		switch {
		case err != nil:
			m.lose(s, err)
		case message != nil && s.dead == nil:
			m.landed(s, f)
		}
		return
	}
}

// interrupt makes a caller that reads s look at its ctx.
func (s *session) interrupt() {
	_ = s.conn.SetReadDeadline(time.Unix(1, 0))
}

func (m *Manager) front(s *session) *flight {
	m.mu.Lock()
	defer m.unlock(nil)
	if len(s.inflight) == 0 {
		return nil
	}
	return s.inflight[0]
}

// fatal is the error of a message after which the server ends the session.
func fatal(message pgproto3.BackendMessage) error {
	m, ok := message.(*pgproto3.ErrorResponse)
	if ok && (m.SeverityUnlocalized == "FATAL" || m.SeverityUnlocalized == "PANIC") {
		return pgconn.ErrorResponseToPgError(m)
	}
	return nil
}

// landed hands the answers of a flight to its entries.
func (m *Manager) landed(s *session, f *flight) {
	s.inflight = s.inflight[:copy(s.inflight, s.inflight[1:])]
	s.proof = f.sent
	m.touch(s)
	for i := range f.parts {
		if s.dead != nil {
			return
		}
		m.answer(s, &f.parts[i])
	}
	s.recycle(f)
}

// recycle keeps a flight and the longest of its lists for the next one. A part that
// failed has handed its list on.
func (s *session) recycle(f *flight) {
	for i := range f.parts {
		p := &f.parts[i]
		if p.statement < beat && p.err == nil && cap(p.entries) > cap(s.list) {
			clear(p.entries)
			s.list = p.entries[:0]
		}
	}
	clear(f.parts)
	s.spare = f
}
