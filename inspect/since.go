package inspect

import "slices"

// backdate adds what requests that wait in slices have waited before. They come first, longest first.
func (r *reader) backdate() {
	waits := 0
	for i := range r.view.Locks {
		l := &r.view.Locks[i]
		if l.Granted {
			break
		}
		if !l.Since.IsZero() {
			l.Since = l.Since.Add(-r.own[l.PID].Waited())
		}
		waits++
	}
	slices.SortStableFunc(r.view.Locks[:waits], func(a, b Lock) int {
		if a.Since.IsZero() || b.Since.IsZero() {
			return b.Since.Compare(a.Since) // one that is not known goes last
		}
		return a.Since.Compare(b.Since)
	})
}

// date says of each lock that is held since when it can have been: PostgreSQL does not
// keep when it was granted. One that may be the session's is as old as that at most.
func (r *reader) date() {
	for i := range r.view.Locks {
		l := &r.view.Locks[i]
		if !l.Granted {
			continue
		}
		l.Since = l.Started
		if l.Scope == TransactionScope {
			l.Since = l.Began
		}
		l.Earliest = !l.Since.IsZero()
	}
}
