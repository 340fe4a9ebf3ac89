package sessionlock

import (
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// role is what a session is for.
type role uint8

const (
	home    role = iota // tries and unlocks, any number of locks
	waits               // waits for one contended key, and holds it once granted
	numbers             // issues fencing tokens
)

const (
	// idle is how long nothing is sent before the watcher reads instead of the callers.
	idle = 5 * time.Millisecond
	// crowd is how many keys make a second flight worth sending before the first is
	// answered.
	crowd = 256
	// throng is how many callers answered at once are worth gathering again before the next
	// flight, and how many keys of a flight are too many for a second small one behind it.
	throng = 4
	// multitude is how many keys of a flight keep those who arrive from trying for mu.
	multitude = 64
)

// session is one connection of a manager. Its fields belong to Manager.mu, except that
// whoever set reading reads and whoever set writing writes.
//
// Callers read their own answers: it saves waking them. The watcher reads while flight
// follows flight, and when nobody has sent anything for a while, to see the session end.
type session struct {
	m      *Manager
	role   role
	conn   net.Conn
	reader *pgproto3.Frontend
	out    []byte
	pid    int
	facts  *facts

	pending  [beat][]*entry // by statement
	list     []*entry       // empty, for the next of them
	spare    *flight        // empty, for the next one
	count    int            // of pending
	repairs  []part         // that go first
	waitFor  *entry         // the slice to send
	single   part           // a beat or unlockAll to send
	inflight []*flight

	reading, writing bool
	dirty            bool      // in Manager.dirty
	sent             time.Time // the last flight
	proof            time.Time // when the last flight that was answered was sent
	freeSince        time.Time // of waits and numbers: when it was last in use
	farewell         bool      // asked for unlockAll, not answered
	dead             error
	kick             chan struct{} // wakes the watcher
	gone             chan struct{} // closed when dead
}

// push asks s for a statement on e.
func (s *session) push(st statement, e *entry) {
	s.pending[st] = append(s.pending[st], e)
	s.count++
	s.m.touch(s)
}

// touch makes unlock send what s has to send.
func (m *Manager) touch(s *session) {
	if !s.dirty {
		s.dirty = true
		m.dirty = append(m.dirty, s)
	}
}

func (s *session) canSend() bool {
	if s.dead != nil || s.writing {
		return false
	}
	switch len(s.inflight) {
	case 0:
		return s.count > 0 || len(s.repairs) > 0 || s.waitFor != nil || s.single.statement != 0 ||
			s.role == numbers && len(s.m.issues) > 0
	case 1:
		return s.count >= crowd || s.count > 0 && s.inflight[0].keys < throng || s.role == numbers && len(s.m.issues) >= crowd
	}
	return false
}

// board takes what s has to send into a new flight.
func (s *session) board() *flight {
	f := s.spare
	if s.spare = nil; f == nil {
		f = &flight{}
	}
	n := min(len(s.repairs), maxRepairs)
	f.parts, f.at, f.sent = append(f.parts[:0], s.repairs[:n]...), 0, time.Now()
	s.repairs = s.repairs[n:]
	room := maxKeys
	for st, entries := range s.pending {
		n := min(len(entries), room)
		if n == 0 {
			continue
		}
		f.parts = append(f.parts, part{statement: statement(st), entries: entries[:n:n]})
		if s.pending[st] = entries[n:]; n == len(entries) {
			s.pending[st], s.list = s.list, nil
		}
		s.count -= n
		room -= n
	}
	if e := s.waitFor; e != nil {
		s.waitFor = nil
		f.parts = append(f.parts, part{statement: slice, entries: []*entry{e}, variant: unlock.forLock(e.id, e.mode), limit: s.m.sliceFor(e, f.sent)})
	}
	if s.single.statement != 0 {
		f.parts = append(f.parts, s.single)
		s.single = part{}
	}
	if s.role == numbers {
		if p, ok := s.m.boardIssues(); ok {
			f.parts = append(f.parts, p)
		}
	}
	if len(f.parts) == 0 {
		return nil // what there was is not wanted any more
	}
	if f.keys = maxKeys - room; f.keys >= multitude {
		s.m.late.Reset(landingTime)
	}
	s.inflight = append(s.inflight, f)
	s.sent = f.sent
	return f
}

func (s *session) write(f *flight) error {
	s.out = f.encode(s.out[:0])
	_, err := s.conn.Write(s.out)
	return err
}

// unlock lets in those who arrived, gives back mu, wakes those that were settled while it
// was held and sends what became due. The session reader is read by the caller itself;
// other sessions that nobody reads are left to their watchers.
func (m *Manager) unlock(reader *session) {
	for {
		m.letIn()
		if m.settled+len(m.told) > 0 {
			m.tell()
		}
		s, f := m.nextFlight()
		m.leave()
		if f == nil {
			if m.arrivals.Load() == nil || !m.mu.TryLock() {
				return // whoever has mu lets them in
			}
			continue
		}
		err := s.write(f)
		m.mu.Lock()
		s.writing = false
		if err != nil {
			m.lose(s, err)
			continue
		}
		if !s.reading && s != reader {
			s.wake()
		}
		m.touch(s)
	}
}

// unlockAside is unlock for those who cannot wait for a write.
func (m *Manager) unlockAside() {
	busy := len(m.dirty)+m.settled+len(m.told) > 0
	m.leave()
	if busy || m.arrivals.Load() != nil {
		m.wg.Go(func() {
			m.mu.Lock()
			m.unlock(nil)
		})
	}
}

// nextFlight takes the next flight of the sessions that have something to send.
func (m *Manager) nextFlight() (*session, *flight) {
	for len(m.dirty) > 0 {
		s := m.dirty[len(m.dirty)-1]
		m.dirty = m.dirty[:len(m.dirty)-1]
		s.dirty = false
		if !s.canSend() {
			continue
		}
		if f := s.board(); f != nil {
			s.writing = true
			return s, f
		}
	}
	return nil, nil
}

func (s *session) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}
