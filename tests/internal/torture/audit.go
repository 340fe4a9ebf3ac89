package torture

import (
	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// Endure strikes the workers once, or for many rounds if GORMLOCK_TORTURE asks for it, and waits after each strike until all of them go on.
func (s *Scene) Endure(strike func()) {
	s.T.Helper()
	for range pgtest.Rounds(1, 30) {
		strike()
		s.Progress(nil)
	}
}

// Regresses is the control: it starts workers that write without a guard, and strikes them until a write comes after one with a later token. Then
// it ends them. If there is no such write, the test fails, because then enduring the strikes with a guard would prove nothing.
func (s *Scene) Regresses(start func(n int), strike func()) {
	s.T.Helper()
	s.naked = true
	start(3)
	const most = 50
	for range most {
		strike()
		if s.Regressions() > 0 {
			break
		}
	}
	s.End()
	if s.Regressions() == 0 {
		s.T.Errorf("no stale write in %d rounds", most)
	}
}

// Audited returns the committed writes, with their place among all, from 1.
func (s *Scene) Audited() map[string]int {
	s.T.Helper()
	rows, err := s.conn().Query(s.T.Context(), "SELECT write FROM audit ORDER BY at")
	if err != nil {
		s.T.Fatal(err)
	}
	writes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.T.Fatal(err)
	}
	audited := map[string]int{}
	for i, write := range writes {
		audited[write] = i + 1
	}
	return audited
}

// Regressions counts the writes that carry an older token than the one before them. The row lock orders the writes of a
// register.
func (s *Scene) Regressions() (n int) {
	s.T.Helper()
	err := s.conn().QueryRow(s.T.Context(), `SELECT count(*) FROM
		(SELECT token, lag(token) OVER (PARTITION BY register ORDER BY at) before FROM audit) a WHERE token < before`).Scan(&n)
	if err != nil {
		s.T.Fatal(err)
	}
	return n
}
