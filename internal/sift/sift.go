// Package sift makes a change of many rows in one statement, and finds those that the server refuses to change.
package sift

import (
	"context"
	"math/rand/v2"
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

// Parts makes a change of a list. If the server refuses it because of a row, nothing of it is done, and it is made for ever smaller parts, in the
// order of the list. done gets each part and what became of it: a change that is refused because of a row is that of one element, and any other
// error is of its part as a whole. If done reports false, the rest is left as it is.
//
// change is called outside of a transaction: only there has a statement that was refused done nothing and kept nothing from being done.
func Parts[T any](ctx context.Context, list []T, change func(part []T) error, done func(part []T, err error) bool) (all bool) {
	if len(list) == 0 {
		return true
	}
	err := ThroughConflicts(ctx, func() error { return change(list) })
	if len(list) == 1 || !sqlstate.IsOfARow(err) {
		return done(list, err)
	}
	half := len(list) / 2
	return Parts(ctx, list[:half:half], change, done) && Parts(ctx, list[half:], change, done)
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
