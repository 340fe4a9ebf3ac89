package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/gormlock/gormlock/inspect/internal/page"
	"github.com/gormlock/gormlock/internal/halt"
)

// shown is what the page shows of a view, as texts for people.
func shown(look *seen) *page.Seen {
	v := look.view
	tree := Tree(v)
	s := &page.Seen{
		Where:  page.Where{Taken: v.Taken, Database: v.Server.Database, Version: v.Server.Version, Role: v.Server.Role, Standby: v.Server.Standby},
		Unseen: v.Unseen,
		Graph:  nodesOf(tree, v.Taken),
		Counts: countsOf(v, tree),
	}
	for _, sample := range look.samples {
		s.History = append(s.History, page.Sample(sample))
	}
	for i := range v.Locks {
		l := &v.Locks[i]
		if l.Granted {
			s.Held = append(s.Held, rowOf(l, v.Taken))
		} else {
			s.Waits = append(s.Waits, rowOf(l, v.Taken))
		}
	}
	for _, l := range v.Leases {
		left := l.Expires.Sub(v.Taken)
		if l.Expired {
			left = -left
		}
		s.Leases = append(s.Leases, page.Lease{
			Key: l.Key, Owner: l.Owner, Expired: l.Expired, Leader: l.Leader, Token: l.Token, Age: page.Span(v.Taken.Sub(l.Acquired)), Left: page.Span(left),
			Slot: l.Slot, Slots: l.Slots,
		})
	}
	for i := range v.Schedules {
		s.Schedules = append(s.Schedules, scheduleOf(&v.Schedules[i], v.Taken))
	}
	for _, q := range v.Jobs {
		row := page.Jobs{Table: q.Table, Queue: q.Queue, Ready: q.Ready, Running: q.Running, Later: q.Later, Dead: q.Dead, Died: q.Died, Oldest: "–"}
		if q.Ready > 0 {
			row.Oldest = page.Span(q.Oldest)
		}
		s.Jobs = append(s.Jobs, row)
	}
	return s
}

func scheduleOf(s *Schedule, now time.Time) page.Schedule {
	row := page.Schedule{
		Key: s.Key, Owner: s.Owner, State: string(s.State(now)), Failures: s.Failures, Problem: s.Problem,
		Last: s.Last, LastAge: ago(s.Last, now), Next: s.Next, NextAge: ago(s.Next, now),
	}
	if !s.Tick.IsZero() {
		row.Next, row.NextAge = s.Tick, ago(s.Tick, now)
		row.Try = s.Attempts
	}
	return row
}

// ago says when t is or was, relative to now.
func ago(t, now time.Time) string {
	switch {
	case t.IsZero():
		return "–"
	case t.After(now):
		return "in " + page.Span(t.Sub(now))
	}
	return page.Span(now.Sub(t)) + " ago"
}

func countsOf(v *View, tree []*Node) page.Counts {
	c := page.Counts{
		Held: v.Totals.Held, Waiting: v.Totals.Waiting, Cut: v.Totals.Cut, Leases: v.Totals.Leases, Schedules: v.Totals.Schedules,
		Rings: rings(tree), Full: min(100, v.Server.Locks*100/max(v.Server.Room, 1)), TableEmpty: v.Server.Locks == 0,
	}
	for _, l := range v.Locks {
		if !l.Granted && !l.Since.IsZero() {
			c.Longest = max(c.Longest, v.Taken.Sub(l.Since))
		}
	}
	for _, n := range tree {
		if n.Wait == nil {
			c.Blocking++
		}
	}
	return c
}

func rings(nodes []*Node) int {
	count := 0
	for _, n := range nodes {
		if n.Cycle {
			count++
		}
		count += rings(n.Waiters)
	}
	return count
}

func rowOf(l *Lock, now time.Time) page.Row {
	r := page.Row{Thing: l.Thing, Key: l.Key, About: about(l), Hint: l.Hint, Age: "?", Session: sessionOf(l.Session, now), Waiters: l.Waiters}
	if !l.Since.IsZero() {
		r.Age = page.Span(now.Sub(l.Since))
	}
	switch {
	case !l.Granted:
		r.Behind = l.Blockers
	case l.Earliest:
		of := "session"
		if l.Scope == TransactionScope {
			of = "transaction"
		}
		r.Age = "≤ " + r.Age
		r.AgeNote = "the age of its " + of + ": PostgreSQL does not say when a lock was granted"
	}
	return r
}

// about is what the page says about a lock in addition to its key.
func about(l *Lock) string {
	var parts []string
	switch l.Kind {
	case Advisory:
		mode := l.Mode
		if l.Scope != "" {
			mode += ", " + string(l.Scope)
		}
		parts = append(parts, mode)
	case Transaction, Tuple:
		parts = append(parts, "row lock")
	default:
		parts = append(parts, l.Mode)
	}
	if l.Name != "" && l.Space != 0 {
		parts = append(parts, fmt.Sprint(l.ID))
	}
	if l.Token != 0 {
		parts = append(parts, fmt.Sprintf("token %d", l.Token))
	}
	if l.Source == "reserved" {
		parts = append(parts, "fixed key of this tool")
	}
	return strings.Join(parts, " · ")
}

func sessionOf(s *Session, now time.Time) page.Session {
	parts := []string{"prepared"}
	if s.PID != 0 {
		parts[0] = fmt.Sprint(s.PID)
	}
	for _, part := range []string{s.User, s.Client} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if s.State != "active" && s.State != "" {
		parts = append(parts, stateOf(s, now))
	}
	if s.Hidden {
		parts = append(parts, "hidden")
	}
	if s.Gone {
		parts = append(parts, "gone")
	}
	drawn := page.Session{PID: s.PID, Name: who(s), About: strings.Join(parts, " · "), Doing: s.Doing, Query: s.Query, Started: s.Started}
	if halt.Runs(s.State) {
		drawn.Statement = s.StateSince
	}
	return drawn
}

// stateOf is the state of a session, and how long it has lasted.
func stateOf(s *Session, now time.Time) string {
	switch {
	case s.State == "disabled":
		return "state unknown, as track_activities is off"
	case s.State == "" || s.StateSince.IsZero():
		return s.State
	}
	return s.State + " " + page.Span(now.Sub(s.StateSince))
}

// who names a session for people.
func who(s *Session) string {
	switch {
	case s.Owner != "":
		return s.Owner
	case s.Application != "":
		return s.Application
	case s.PID == 0 && s.Prepared != "":
		return "prepared " + s.Prepared
	case s.PID == 0:
		return "a prepared transaction"
	case s.User != "":
		return s.User
	}
	return fmt.Sprintf("session %d", s.PID)
}

// nodesOf is the tree as the page draws it.
func nodesOf(tree []*Node, now time.Time) []*page.Node {
	var nodes []*page.Node
	for _, n := range tree {
		drawn := &page.Node{
			PID: n.PID, Title: who(n.Session), Query: n.Query, Waits: n.Wait != nil, Ring: n.Cycle, Blockers: n.Blockers, Waiters: nodesOf(n.Waiters, now),
		}
		switch {
		case n.Wait != nil:
			drawn.What, drawn.Detail = "wants "+n.Wait.Key, waiting(n.Wait, now)
		case len(n.Holds) > 0:
			var keys []string
			for _, l := range n.Holds {
				keys = append(keys, l.Key)
			}
			drawn.What, drawn.Detail = "holds "+strings.Join(keys, ", "), stateOf(n.Session, now)
		case n.Gone:
			drawn.Detail = "gone"
		}
		if n.Doing != "" {
			drawn.Query = n.Doing
		}
		nodes = append(nodes, drawn)
	}
	return nodes
}

// waiting says how long a request has waited, and what is probably wrong with it.
func waiting(l *Lock, now time.Time) string {
	text := "waits"
	switch {
	case l.Hint != "" && !l.Since.IsZero():
		return "db in place of tx? " + page.Span(now.Sub(l.Since))
	case !l.Since.IsZero():
		text += " " + page.Span(now.Sub(l.Since))
	}
	return text
}
