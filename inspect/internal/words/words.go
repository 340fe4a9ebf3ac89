// Package words puts gormlock's own statements into words: a wait is shown as "takes invoice/42, timeout 3s" and not as SQL.
//
// It recognizes statements by their text, as far as a server shows it. Statements of the program stay SQL, even if gormlock added a condition.
package words

import (
	"strconv"
	"strings"
	"time"

	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/waits"
	"github.com/gormlock/gormlock/lockkey"
)

// Statement is a statement that gormlock sent.
type Statement struct {
	asked *lockrequest.Asked // a request for transaction-level locks; nil: another statement
	other statement
	waits waits.Before // what its text says about earlier slices of a wait
}

// Read recognizes a statement of gormlock, even if its end was cut off. It reports false for every other statement.
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

// Keys are the keys of the requested locks, as far as the text has them.
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

// Waited is how long the session waited for the lock before this statement.
func (s Statement) Waited() time.Duration { return s.waits.Waited }

// Say says what the statement does, or did if it no longer runs. name returns the name of a key. wanted is the key that the session waits for, or
// "": the text of some statements has no keys.
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

// request describes a request for locks.
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

// list names the requested locks, at most the first few.
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

// short is a duration without trailing zero units: 1m, not 1m0s.
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
