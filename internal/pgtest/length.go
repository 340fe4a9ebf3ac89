package pgtest

import (
	"math/rand/v2"
	"os"
	"time"
)

// Rounds returns short, or long if GORMLOCK_TORTURE asks for it.
func Rounds(short, long int) int {
	if os.Getenv("GORMLOCK_TORTURE") != "" {
		return long
	}
	return short
}

// Pause waits for a random time below most.
func Pause(most time.Duration) { <-time.After(rand.N(most)) }
