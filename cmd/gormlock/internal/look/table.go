package look

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
	"github.com/gormlock/gormlock/inspect"
)

// Locks are the lines of a table of a view's locks, as wide as the terminal.
func Locks(v *inspect.View, p *cli.Program) []string {
	s := p.Style
	t := &terminal.Table{
		Head:  []string{"KEY", "TOKEN", "MODE", "SCOPE", "STATE", "FOR", "PID", "APPLICATION", "USER", "CLIENT", "BLOCKED BY", "DOING"},
		Spare: []string{"CLIENT", "TOKEN", "USER", "SCOPE", "MODE"},
	}
	for i := range v.Locks {
		l := &v.Locks[i]
		state := terminal.Plain("held")
		switch {
		case !l.Granted:
			state = terminal.Painted("waits", s.Red)
		case l.Waiters > 0:
			state = terminal.Painted("blocks", s.Yellow)
		}
		cells := []terminal.Cell{terminal.Painted(l.Key, s.Bold), terminal.Plain(number(l.Token)), terminal.Plain(l.Mode), terminal.Plain(string(l.Scope)), state}
		for _, text := range []string{
			age(v, l), process(l.Session), l.Application, l.User, l.Client, fewPIDs(l.Blockers), doing(l.Session),
		} {
			cells = append(cells, terminal.Plain(text))
		}
		t.Add(cells...)
	}
	return fitted(t, p)
}

// fitted are the lines of a table, with a note about columns and values that did not fit.
func fitted(t *terminal.Table, p *cli.Program) []string {
	lines, left, short := t.Lines(p.Style, p.Width())
	for _, note := range []struct {
		says  string
		heads []string
	}{
		{"left out for want of room: %s; a wider terminal and gormlock ls --json have them", left},
		{"too long for the table: where %s has …, gormlock ls --json has all of it", short},
	} {
		if len(note.heads) == 0 {
			continue
		}
		for _, line := range terminal.Wrap(fmt.Sprintf(note.says, strings.Join(note.heads, ", ")), p.Width()) {
			lines = append(lines, p.Style.Dim(line))
		}
	}
	return lines
}

// leases are the lines of the table of the leases in v.
func leases(v *inspect.View, p *cli.Program) []string {
	s := p.Style
	t := &terminal.Table{Head: []string{"LEASE", "TOKEN", "STATE", "FOR", "OWNER"}}
	for _, l := range v.Leases {
		state, since := terminal.Plain("held"), "expires in "+terminal.Span(l.Expires.Sub(v.Taken))
		switch {
		case l.Expired:
			state, since = terminal.Painted("free", s.Dim), "expired "+terminal.Span(v.Taken.Sub(l.Expires))+" ago"
		case l.Leader:
			state = terminal.Plain("leads")
		case l.Slots > 0:
			state = terminal.Plain(fmt.Sprintf("slot %d of %d", l.Slot, l.Slots))
		}
		t.Add(terminal.Painted(l.Key, s.Bold), terminal.Plain(number(l.Token)), state, terminal.Plain(since), terminal.Plain(l.Owner))
	}
	return fitted(t, p)
}

// schedules are the lines of the table of the schedules in v.
func schedules(v *inspect.View, p *cli.Program) []string {
	s := p.Style
	t := &terminal.Table{
		Head:  []string{"SCHEDULE", "STATE", "LAST TICK", "NEXT TICK", "FAILURES", "LAST RUN BY", "PROBLEM"},
		Spare: []string{"LAST RUN BY"},
	}
	for i := range v.Schedules {
		c := &v.Schedules[i]
		state, next := string(c.State(v.Taken)), c.Next
		if !c.Tick.IsZero() {
			state, next = fmt.Sprintf("%s, try %d", state, c.Attempts), c.Tick
		}
		var paint func(string) string
		switch c.State(v.Taken) {
		case inspect.ScheduleOrphaned, inspect.ScheduleOverdue:
			paint = s.Red
		case inspect.ScheduleRetries:
			paint = s.Yellow
		case inspect.ScheduleWaits, inspect.ScheduleRuns:
		}
		problem, _, _ := strings.Cut(c.Problem, "\n")
		t.Add(terminal.Painted(c.Key, s.Bold), terminal.Painted(state, paint), terminal.Plain(when(c.Last, v.Taken)), terminal.Plain(when(next, v.Taken)),
			terminal.Plain(number(c.Failures)), terminal.Plain(c.Owner), terminal.Plain(terminal.Cut(terminal.OneLine(problem), 200)))
	}
	return fitted(t, p)
}

// when is how far t is from now, or "" if there is no time.
func when(t, now time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.After(now):
		return "in " + terminal.Span(t.Sub(now))
	}
	return terminal.Span(now.Sub(t)) + " ago"
}

// number is n, or "" for 0.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// age is how long a request has waited, or the longest time that a lock can have been held.
func age(v *inspect.View, l *inspect.Lock) string {
	switch {
	case l.Since.IsZero():
		return "?"
	case l.Earliest:
		return "<" + terminal.Span(v.Taken.Sub(l.Since)+1e9) // rounded up: it is younger than this
	}
	return terminal.Span(v.Taken.Sub(l.Since))
}

func process(s *inspect.Session) string {
	if s.Prepared != "" {
		return "prepared " + terminal.OneLine(s.Prepared)
	}
	return fmt.Sprint(s.PID)
}

// pidList names processes for people. Prepared transactions have the PID 0.
func pidList(pids []int) string {
	var list []string
	for _, pid := range pids {
		if pid == 0 {
			list = append(list, "a prepared transaction")
		} else {
			list = append(list, strconv.Itoa(pid))
		}
	}
	return strings.Join(list, " ")
}

// fewPIDs names the first of many processes.
func fewPIDs(pids []int) string {
	const shown = 3
	if len(pids) <= shown+1 {
		return pidList(pids)
	}
	return pidList(pids[:shown]) + fmt.Sprintf(" +%d", len(pids)-shown)
}

// doing says what a session does.
func doing(s *inspect.Session) string {
	query := terminal.Cut(statement(s), 200)
	switch {
	case s.Gone:
		return "gone"
	case s.Hidden:
		return "(hidden from this role)"
	case s.State == "disabled":
		return "(track_activities is off for it)"
	case s.State == "" || s.State == "active":
		return query
	case query == "":
		return s.State
	}
	return s.State + ": " + query
}

// statement is the statement of a session on one line, in words if gormlock sent it.
func statement(s *inspect.Session) string {
	if s.Doing != "" {
		return terminal.OneLine(s.Doing)
	}
	return server.Statement(s.Query)
}
