package torture

import (
	"github.com/anishathalye/porcupine"
)

// Check ends the workers. It fails the test if two of them held a register at a time, with the given kind of loss, or if a write of a superseded
// worker was accepted.
func (s *Scene) Check(loss Loss) { _ = s.CheckEvents(loss) }

// CheckEvents is Check, and returns the events of the workers.
func (s *Scene) CheckEvents(loss Loss) []Event {
	s.T.Helper()
	events := s.End()
	audited := s.Audited()
	for register := range Registers {
		history := NewHistory(events, register, loss, audited)
		if history.Mutex(s.T) != porcupine.Ok {
			s.T.Errorf("register %d: two held it", register)
		}
		if history.Fence(s.T) != porcupine.Ok {
			s.T.Errorf("register %d: a superseded holder wrote", register)
		}
		s.T.Logf("register %d: %d operations on the lock, %d tokens and writes", register, len(history.mutex), len(history.fence))
	}
	ends := map[string]int{}
	for _, e := range events {
		ends[e.What]++
	}
	s.T.Logf("events: %v", ends)
	if n := s.Regressions(); n > 0 {
		s.T.Errorf("%d writes came after one with a later token", n)
	}
	return events
}
