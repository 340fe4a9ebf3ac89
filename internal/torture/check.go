package torture

import (
	"github.com/anishathalye/porcupine"
	"github.com/jackc/pgx/v5"
)

// Check ends the workers. It fails the test where two of them held a register at a time, given what a loss is, or where
// a write was accepted from one that was superseded.
func (s *Scene) Check(loss Loss) {
	s.T.Helper()
	events := s.end()
	audited := s.audit()
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
	if n := s.regressions(); n > 0 {
		s.T.Errorf("%d writes came after one with a later token", n)
	}
}

// Regresses strikes at the workers, for so many rounds at most, until a write comes after one with a later token. Then
// it ends them, and reports whether that was seen.
func (s *Scene) Regresses(rounds int, strike func()) bool {
	s.T.Helper()
	for range rounds {
		strike()
		if s.regressions() > 0 {
			break
		}
	}
	s.end()
	return s.regressions() > 0
}

// audit returns the writes that were committed.
func (s *Scene) audit() map[string]bool {
	s.T.Helper()
	rows, err := s.conn().Query(s.T.Context(), "SELECT write FROM audit")
	if err != nil {
		s.T.Fatal(err)
	}
	writes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.T.Fatal(err)
	}
	audited := map[string]bool{}
	for _, write := range writes {
		audited[write] = true
	}
	return audited
}

// regressions counts the writes that carry an older token than the one before them. The row lock orders the writes of a
// register.
func (s *Scene) regressions() (n int) {
	s.T.Helper()
	err := s.conn().QueryRow(s.T.Context(), `SELECT count(*) FROM
		(SELECT token, lag(token) OVER (PARTITION BY register ORDER BY at) before FROM audit) a WHERE token < before`).Scan(&n)
	if err != nil {
		s.T.Fatal(err)
	}
	return n
}
