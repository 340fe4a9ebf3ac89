package inspect

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// candidate is a table that, by its locks, may have the row that a transaction waits for.
type candidate struct {
	Name    string `json:"name"`    // as PostgreSQL quotes it
	Bare    string `json:"bare"`    // without its schema and quotes
	Trigger bool   `json:"trigger"` // it has a trigger of the program, which may write other tables
}

// suspect notes the tables with rows that a process may be waiting for.
func (r *reader) suspect(pid int, candidates []byte) error {
	if candidates == nil {
		return nil
	}
	var list []candidate
	if err := json.Unmarshal(candidates, &list); err != nil {
		return err
	}
	r.candidates[pid] = list
	r.tables[pid] = reached(list, "")
	return nil
}

// narrow keeps only those that the statement of the process can have reached.
func (r *reader) narrow(pid int, query string) {
	if list := r.candidates[pid]; list != nil {
		r.tables[pid] = reached(list, query)
	}
}

// shownText is how many bytes of a statement a server shows by default. A longer text may be cut.
const shownText = 1000

// writes are the statements that write only the table named at their beginning.
var writes = regexp.MustCompile(`(?i)^\s*(INSERT|UPDATE|DELETE)\s`)

// reached are the candidates that the statement can wait for: all of them, unless its text names some and it calls nothing that can have reached
// the others.
func reached(candidates []candidate, query string) []string {
	var all, named []string
	triggers := false
	for _, c := range candidates {
		all = append(all, c.Name)
		if regexp.MustCompile(`(?i)(^|[^\w$])` + regexp.QuoteMeta(c.Bare) + `($|[^\w$])`).MatchString(query) {
			named = append(named, c.Name)
			triggers = triggers || c.Trigger
		}
	}
	if len(named) == 0 || triggers || len(query) >= shownText && !writes.MatchString(query) {
		return all
	}
	return named
}

// locate says on which table each lock is. For a held lock, only the waits for it show that. Each wait for the rows of a transaction has its own
// place, and the transaction holds them all.
func (r *reader) locate() {
	wanted := map[string][][]string{} // what each wait can be for, by Thing, longest wait first
	rows := map[string]string{}
	for i := range r.view.Locks {
		l := &r.view.Locks[i]
		if l.Granted {
			continue
		}
		tables := r.tables[l.PID]
		if l.Table != "" {
			tables = []string{l.Table}
		}
		if len(tables) == 1 {
			l.Table = tables[0]
		}
		if l.Kind == Tuple {
			rows[l.Thing] = l.Row
		}
		if len(tables) > 0 {
			wanted[l.Thing] = append(wanted[l.Thing], tables)
		}
	}
	for i := range r.view.Locks {
		l := &r.view.Locks[i]
		if !l.Granted {
			continue
		}
		l.Row = rows[l.Thing]
		r.held[l.Thing] = joint(wanted[l.Thing])
		if tables := r.held[l.Thing]; len(tables) == 1 && len(tables[0]) == 1 {
			l.Table = tables[0][0]
		}
	}
}

// joint is the list of places that several waits are for, each once. A wait that can be for one of several tables adds nothing if another
// wait is known to be for one of them.
func joint(waits [][]string) [][]string {
	var list [][]string
	known := func(table string) bool {
		return slices.ContainsFunc(list, func(tables []string) bool { return len(tables) == 1 && tables[0] == table })
	}
	for _, certain := range []bool{true, false} {
		for _, tables := range waits {
			if len(tables) == 1 == certain && !slices.ContainsFunc(tables, known) &&
				!slices.ContainsFunc(list, func(other []string) bool { return slices.Equal(tables, other) }) {
				list = append(list, tables)
			}
		}
	}
	return list
}

// place says, for people, what a lock that is not an advisory lock is on.
func (r *reader) place(l *Lock) string {
	switch {
	case l.Table != "" && l.Row != "":
		return fmt.Sprintf("row %s of %s", l.Row, l.Table)
	case l.Table != "" && l.Kind == Transaction:
		return "a row of " + l.Table
	case l.Table != "":
		return "table " + l.Table
	case l.Kind != Transaction:
		return string(l.Kind)
	case !l.Granted && len(r.tables[l.PID]) > 0:
		return "a row of " + few(r.tables[l.PID], " or ")
	case l.Granted && len(r.held[l.Thing]) == 1:
		return "a row of " + few(r.held[l.Thing][0], " or ")
	case l.Granted && len(r.held[l.Thing]) > 1:
		var each []string
		for _, tables := range r.held[l.Thing] {
			each = append(each, few(tables, " or "))
		}
		return "rows of " + few(each, " and ")
	}
	return "a transaction's rows"
}

// few is a list with a word before its last element, and without the end if it is long.
func few(names []string, last string) string {
	const shown = 3
	if len(names) > shown+1 {
		names = append(slices.Clone(names[:shown]), fmt.Sprintf("%d more tables", len(names)-shown))
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + last + names[len(names)-1]
}
