package reload

import (
	"strconv"
	"time"

	"github.com/gormlock/gormlock/internal/statement"
)

// spelling is the name of a key that includes the zones of its times: a timestamp without a zone is what the clock shows.
func spelling(key []any) string {
	name := statement.KeyName(key)
	for _, part := range key {
		if t, ok := timeIn(part); ok {
			_, offset := t.Zone()
			name += " " + strconv.Itoa(offset)
		}
	}
	return name
}

// isEqual reports whether two keys are certainly equal. It only compares numbers and texts.
func isEqual(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		switch a[i].(type) {
		case int, int32, int64, uint, uint32, uint64, string:
			if a[i] != b[i] {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// namesForKeys returns the function that names keys, so that given and found keys can be compared. A time column holds instants
// (timestamptz) or what clocks show (timestamp), and the model does not always say which. If every row was found, the given and the
// found keys match one to one when they are compared in the column's way. So if they match one to one in exactly one of the two ways,
// that is the column's way. If they match in both or in none, the server is asked: storedNames.
func namesForKeys(given, found [][]any) func(key []any) string {
	given = differentKeys(given)
	for _, key := range given {
		if countTimes(key) != 1 {
			return spelling
		}
	}
	moments, clocks := oneToOne(given, found, statement.KeyName), oneToOne(given, found, clockName)
	switch {
	case moments && !clocks:
		return statement.KeyName
	case clocks && !moments:
		return clockName
	}
	return spelling
}

// differentKeys are the keys without repeated spellings.
func differentKeys(keys [][]any) [][]any {
	named := make(map[string]bool, len(keys))
	var different [][]any
	for _, key := range keys {
		if name := spelling(key); !named[name] {
			named[name] = true
			different = append(different, key)
		}
	}
	return different
}

// oneToOne reports whether given and found keys have the same names, and all names differ.
func oneToOne(given, found [][]any, name func([]any) string) bool {
	left := make(map[string]bool, len(found))
	for _, key := range found {
		left[name(key)] = true
	}
	if len(left) != len(found) || len(given) != len(found) {
		return false
	}
	for _, key := range given {
		delete(left, name(key))
	}
	return len(left) == 0
}

// clockName is the name of a key by what its clocks show. The zones do not matter.
func clockName(key []any) string {
	shown := make([]any, len(key))
	for i, part := range key {
		shown[i] = part
		if t, ok := timeIn(part); ok {
			shown[i] = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
		}
	}
	return statement.KeyName(shown)
}

func countTimes(key []any) int {
	times := 0
	for _, part := range key {
		if _, ok := timeIn(part); ok {
			times++
		}
	}
	return times
}

// timeIn is the time in a part of a key, if it is one.
func timeIn(part any) (time.Time, bool) {
	part, _ = statement.Sent(part)
	if t, ok := part.(*time.Time); ok && t != nil {
		return *t, true
	}
	t, ok := part.(time.Time)
	return t, ok
}
