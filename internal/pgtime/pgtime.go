// Package pgtime knows which times PostgreSQL stores.
package pgtime

import (
	"fmt"
	"time"
)

// The first and the last year of which a timestamptz holds every moment, and an int64 too, in microseconds since 1970.
const (
	firstYear = -4712
	lastYear  = 294246
)

var (
	first = time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC)
	after = time.Date(lastYear+1, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Check returns an error for a time that a timestamptz does not hold. Drivers may store another time instead, without an error.
func Check(t time.Time) error {
	if t.Before(first) || !t.Before(after) {
		return fmt.Errorf("a timestamptz cannot hold %s: it has the years %d to %d", t.UTC().Format(time.RFC3339), firstYear, lastYear)
	}
	return nil
}
