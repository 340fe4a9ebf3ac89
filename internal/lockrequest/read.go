package lockrequest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gormlock/gormlock/internal/lookalike"
	"github.com/gormlock/gormlock/lockkey"
)

// Asked is what a statement of this package asks for, as far as its text shows.
type Asked struct {
	Locks   []AskedLock // in the order in which they are taken
	More    bool        // the text was cut, so there may be more locks
	Try     bool
	Timeout time.Duration // 0: as the session waits
	Begins  bool          // the transaction begins with it
}

// AskedLock is one lock that is asked for. Its key has no name, because the text has none.
type AskedLock struct {
	Key    lockkey.Key
	Shared bool
}

var (
	lockCall   = regexp.MustCompile(`pg_(try_)?advisory_xact_lock(_shared)?\((-?\d+)(?:, (-?\d+))?\)`)
	rowCall    = regexp.MustCompile(`pg_(try_)?advisory_xact_lock(_shared)?\(u\.`)
	lockBudget = regexp.MustCompile(`set_config\('lock_timeout', (?:'(\d+)'|greatest\(1, ceil\((\d+) )`)
	lockArray  = regexp.MustCompile(`'\{([^}']*)(\}'::(int8|int4|bool))?`)
	execution  = regexp.MustCompile(`^(?:BEGIN[A-Z ]*|SAVEPOINT gormlock); (?:PREPARE .*; )?EXECUTE ` + prefix + `(try_)?advisory_xact_lock(_shared)?_[0-9a-f]{8}\((-?\d+)(?:, (-?\d+))?(?:, '(\d+)')?\)(?:;|$)`)
	preparing  = regexp.MustCompile(`^(?:BEGIN[A-Z ]*|SAVEPOINT gormlock); (?:PREPARE|EXECUTE) ` + prefix + `(try_)?advisory_`)
)

// begins are the beginnings of texts that begin a transaction.
var begins = []string{"BEGIN", "SET TRANSACTION ISOLATION LEVEL ", "SELECT CASE WHEN version() ", "SELECT CASE WHEN (version() ", "WITH before AS MATERIALIZED (SELECT current_setting('lock_timeout') "}

// Read reads what a statement of [Request.Acquire], [Request.Opening] or [Request.Leading] asks for. The beginning of the text is enough,
// because servers show only the beginning of long statements. It reports false for every other text.
func Read(text string) (Asked, bool) {
	if call := preparing.FindStringSubmatch(text); call != nil {
		return readExecution(text, call[1] != "")
	}
	a := Asked{Begins: slices.ContainsFunc(begins, func(begin string) bool { return strings.HasPrefix(text, begin) })}
	if !a.Begins && !strings.HasPrefix(text, "SAVEPOINT gormlock; ") || !isOurs(text) {
		return Asked{}, false
	}
	if budget := lockBudget.FindStringSubmatch(text); budget != nil {
		milliseconds, _ := strconv.ParseInt(budget[1]+budget[2], 10, 64) // digits; gormlock never writes too many
		a.Timeout = time.Duration(milliseconds) * time.Millisecond
	}
	if call := lockCall.FindStringSubmatch(text); call != nil {
		a.Try = call[1] != ""
		key, ok := readKey(call[3], call[4])
		if ok {
			a.Locks = []AskedLock{{key, call[2] != ""}}
		}
		return a, ok
	}
	call := rowCall.FindStringSubmatch(text)
	if call == nil {
		a.More = true
		a.Try = strings.Contains(text, "pg_try_advisory")
		return a, true
	}
	a.Try = call[1] != ""
	a.Locks, a.More = readRows(text, call[2] != "" && !strings.Contains(text, "CASE WHEN u.shared THEN"))
	return a, true
}

// readExecution reads a text in which a prepared statement is executed.
func readExecution(text string, try bool) (Asked, bool) {
	a := Asked{Begins: strings.HasPrefix(text, "BEGIN"), Try: try}
	call := execution.FindStringSubmatch(text)
	if call == nil {
		a.More = true
		return a, true
	}
	key, ok := readKey(call[3], call[4])
	a.Locks = []AskedLock{{key, call[2] != ""}}
	milliseconds, _ := strconv.ParseInt(call[5], 10, 64) // "": as the session waits
	a.Timeout = time.Duration(milliseconds) * time.Millisecond
	return a, ok
}

// isOurs reports whether the text has one of the checks that gormlock writes before each lock.
func isOurs(text string) bool {
	return strings.Contains(text, " THEN "+lookalike.Raise) ||
		strings.Contains(text, "('"+refusedIsolation+"' || ") || // this and the following: gormlock 0.2 and older
		strings.Contains(text, "(1, CASE WHEN pg_is_in_recovery() THEN "+strconv.Itoa(answerStandby)) ||
		strings.Contains(text, "('gormlock.answer', (CASE WHEN pg_is_in_recovery() THEN "+strconv.Itoa(answerStandby))
}

func readKey(first, second string) (lockkey.Key, bool) {
	if second == "" {
		id, err := strconv.ParseInt(first, 10, 64)
		return lockkey.Int64(id), err == nil
	}
	hi, errHi := strconv.ParseInt(first, 10, 32)
	lo, errLo := strconv.ParseInt(second, 10, 32)
	return lockkey.Pair(int32(hi), int32(lo)), errHi == nil && errLo == nil
}

// readRows reads what [Request.from] writes. shared says that the name of the lock function makes all locks shared.
func readRows(text string, shared bool) (locks []AskedLock, more bool) {
	_, rows, _ := strings.Cut(text, " unnest(")
	whole, _, closed := strings.Cut(rows, ") WITH ORDINALITY")
	var ids, his, los, flags []string
	for _, array := range lockArray.FindAllStringSubmatch(whole, -1) {
		elements := strings.Split(array[1], ",")
		if array[2] == "" {
			elements = elements[:len(elements)-1] // the last number may be cut
		}
		switch {
		case array[3] == "bool" || array[2] == "" && his != nil && los != nil:
			flags = elements
		case ids == nil:
			ids = elements
		case his == nil:
			his = elements
		default:
			los = elements
		}
	}
	for i, first := range ids {
		second := ""
		if first == "NULL" {
			if i >= len(los) {
				return locks, true
			}
			first, second = his[i], los[i]
		}
		key, ok := readKey(first, second)
		if !ok {
			return locks, true
		}
		locks = append(locks, AskedLock{key, shared || i < len(flags) && flags[i] == "t"})
	}
	return locks, !closed
}
