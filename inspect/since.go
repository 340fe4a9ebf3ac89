package inspect

import "slices"

// backdate adds the earlier slices to the age of requests that wait in slices. The oldest requests come first.
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
			return b.Since.Compare(a.Since) // a request without a known age goes last
		}
		return a.Since.Compare(b.Since)
	})
}

// date sets the earliest time at which each held lock can have been granted, because PostgreSQL does not keep when it was. If the lock may belong
// to the session, that is the session's beginning.
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
