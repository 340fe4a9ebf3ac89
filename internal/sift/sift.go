// Package sift makes a change of many rows in one statement, and finds those that the server refuses to change.
package sift

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gormlock/gormlock/internal/sqlstate"
)

const (
	// conflictTries is how often a change that meets others is made again.
	conflictTries = 3
	// conflictPause is the pause before that, and conflictMore by how much longer it may be.
	conflictPause = 5 * time.Millisecond
	conflictMore  = 45 * time.Millisecond
)

// tryCost is about what it costs to change a few rows.
const tryCost = 5 * time.Millisecond

// Parts makes a change of a list. If the server refuses it because of a row, nothing of it is done, and it is made for ever smaller parts, the larger
// ones first. done gets each part and what became of it: a change that is refused because of a row is that of one element, and any other
// error is of its part as a whole. If done reports false, the rest is left as it is.
//
// change is called outside of a transaction: only there has a statement that was refused done nothing and kept nothing from being done.
func Parts[T any](ctx context.Context, list []T, change func(part []T) error, done func(part []T, err error) bool) (all bool) {
	parts := [][]T{list}
	for len(parts) > 0 {
		part := parts[0]
		if parts = parts[1:]; len(part) == 0 {
			continue
		}
		began := time.Now()
		err := ThroughConflicts(ctx, func() error { return change(part) })
		if len(part) > 1 && sqlstate.IsOfARow(err) {
			parts = append(parts, Divide(part, time.Since(began))...)
		} else if !done(part, err) {
			return false
		}
	}
	return true
}

// Divide makes smaller parts of one that was refused in some time: as many as can be tried in that time. So a trigger that waits before it refuses is
// met only a few times, and one that fails at once with few statements.
func Divide[T any](part []T, took time.Duration) [][]T {
	n := min(max(int(took/tryCost), 2), len(part))
	return slices.Collect(slices.Chunk(part, (len(part)+n-1)/n))
}

// ThroughConflicts makes a change again, as a whole, if it met others in a trigger, as by a deadlock: mostly it passes then. Smaller parts would only
// meet more of them. What fails each time is the fault of a row.
func ThroughConflicts(ctx context.Context, change func() error) error {
	err := change()
	for tries := 0; tries < conflictTries && sqlstate.IsOfARow(err) && sqlstate.InClass(err, "40"); tries++ {
		select {
		case <-ctx.Done():
			return err
		case <-time.After(conflictPause + rand.N(conflictMore)):
		}
		err = change()
	}
	return err
}
