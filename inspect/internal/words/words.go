// Package words puts the statements that gormlock itself sends into words: who looks at a wait reads
// "takes invoice/42, timeout 3s" and not the SQL that does it.
//
// It knows them by their text, as far as a server shows it. The statements of the program are none of its business: they
// stay the SQL that they are, even if gormlock added a condition.
package words

import (
	"strconv"
	"strings"
	"time"

	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/waits"
	"github.com/gormlock/gormlock/lockkey"
)

// Statement is one of gormlock's own.
type Statement struct {
	asked *lockrequest.Asked // a request for transaction-level locks; nil: another statement
	other statement
	waits waits.Before // what its text says of a wait that goes on
}

// Read recognises a statement of gormlock, also one whose end was cut off. It reports false for every other.
func Read(query string) (Statement, bool) {
	if asked, ok := lockrequest.Read(query); ok {
		return Statement{asked: &asked}, true
	}
	for _, s := range statements {
		if s.is(query) {
			return Statement{other: s, waits: waits.Read(query)}, true
		}
	}
	if s, ok := claim(query); ok {
		return Statement{other: s}, true
	}
	return Statement{}, false
}

// Keys are the keys of the locks that it asks for, as far as its text has them.
func (s Statement) Keys() []lockkey.Key {
	if s.asked == nil {
		return nil
	}
	var keys []lockkey.Key
	for _, l := range s.asked.Locks {
		keys = append(keys, l.Key)
	}
	return keys
}

// Waited is how long its session has waited for the lock before this statement.
func (s Statement) Waited() time.Duration { return s.waits.Waited }

// Say is what it does, or did when it does not run any more. name gives the keys their names; wanted is the key that its
// session waits for, "" for none: the text of some statements has no keys.
func (s Statement) Say(runs bool, name func(lockkey.Key) string, wanted string) string {
	if s.asked != nil {
		return s.request(runs, name)
	}
	text := s.other.did
	if runs {
		text = s.other.does
	}
	if wanted != "" && s.other.ofKey {
		text = strings.Replace(text, "a session lock", wanted, 1)
	}
	if runs && s.waits.Left > 0 {
		text += ", timeout " + short((s.waits.Waited + s.waits.Left).Round(100*time.Millisecond))
	}
	return text
}

// request is what is said of a request for locks.
func (s Statement) request(runs bool, name func(lockkey.Key) string) string {
	verb := "takes "
	switch {
	case !runs:
		verb = "asked for "
	case s.asked.Try:
		verb = "tries "
	}
	switch {
	case s.asked.Begins && runs:
		verb = "begins, " + verb
	case s.asked.Begins:
		verb = "began, " + verb
	}
	text := verb + s.list(name)
	if s.asked.Try && !runs {
		text += ", without waiting"
	}
	if s.asked.Timeout > 0 {
		text += ", timeout " + short(s.asked.Timeout)
	}
	return text
}

// list names the locks that are asked for, the first few of many.
func (s Statement) list(name func(lockkey.Key) string) string {
	const shown = 3
	var names []string
	for i, l := range s.asked.Locks {
		if i == shown && len(s.asked.Locks) > shown+1 {
			break
		}
		text := name(l.Key)
		if l.Shared {
			text += " (shared)"
		}
		names = append(names, text)
	}
	left := len(s.asked.Locks) - len(names)
	switch {
	case len(names) == 0:
		return "locks"
	case s.asked.More:
		return strings.Join(names, ", ") + " and more"
	case left > 0:
		return strings.Join(names, ", ") + " and " + strconv.Itoa(left) + " more"
	}
	return strings.Join(names, ", ")
}

// short is a duration without the zeros at its end: 1m, not 1m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
