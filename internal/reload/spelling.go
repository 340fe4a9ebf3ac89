package reload

import (
	"strconv"
	"time"

	"github.com/gormlock/gormlock/internal/statement"
)

// spelling is the name of a key that tells times of other zones apart: a timestamp without one is what the clock shows.
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

// isEqual reports whether two keys are surely equal: it compares numbers and texts.
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

// namesForKeys is how the keys that were given and those that were found are compared. A column of times is one of moments
// (timestamptz) or one of what clocks show (timestamp), and the model does not tell which for sure. Where every row was
// found, the keys are one to one in the way that is the column's; where one was not, there are fewer of them. So if they
// are one to one in only one of the ways, it is that. Where they are in both or none, the server is asked: storedNames.
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

// differentKeys are the keys, each spelling of one once.
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

// oneToOne reports whether the names of the keys given are those of the keys found, and all different.
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

// clockName is the name of a key by what the clock shows, in whatever zone.
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

// timeIn is the time that a part of a key stands for, if it is one.
func timeIn(part any) (time.Time, bool) {
	part, _ = statement.Sent(part)
	if t, ok := part.(*time.Time); ok && t != nil {
		return *t, true
	}
	t, ok := part.(time.Time)
	return t, ok
}
