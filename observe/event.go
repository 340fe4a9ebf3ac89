package observe

import (
	"context"
	"time"
)

// Kind is what happened.
type Kind uint8

// What happens to locks and guarded writes.
const (
	Acquired    Kind = iota + 1 // a lock was granted; Wait says after how long
	NotAcquired                 // a try found the lock held by somebody else
	TimedOut                    // a wait ended without the lock
	Released                    // a lock was given back; Held says after how long
	Lost                        // a lock was lost; Err says why
	Stale                       // a versioned write was refused
	Fenced                      // a fenced write was refused
	Claimed                     // rows were claimed
	Retried                     // a transaction begins again; Err says why
	GivenUp                     // a tick of a schedule failed as often as it may; Err is the last error
	Done                        // a job is done; Held says how long its handler took
	Failed                      // an attempt of a job failed, and another follows; Err says why
	Later                       // a job is to be worked on again later, as its handler asked, or because the server could not be asked for it; Err says why
	Dead                        // a job is given up; Err is the last error
	TakenOver                   // a job was taken from a worker whose lease had ended
)

var names = [...]string{"unknown", "acquired", "not acquired", "timed out", "released", "lost", "stale", "fenced", "claimed", "retried", "given up", "done", "failed", "later", "dead", "taken over"}

// String is the kind in a word or two: "not acquired".
func (k Kind) String() string {
	if int(k) >= len(names) {
		return names[0]
	}
	return names[k]
}

// Event is one thing that happened. Fields that say nothing about its Kind are zero.
type Event struct {
	Kind   Kind
	Source string // the package: "gormlock", "sessionlock", "lease", "work"
	Key    string // the key, for people: "invoice/42"; of a job its ID
	Space  int16  // of an advisory lock that was granted or refused, as objsubid in pg_locks: 1 one bigint, 2 two int4
	ID     int64  // its number there; of two int4 the first is in the upper half
	Table  string // the table whose rows were locked, written or claimed
	Mode   string // how: "exclusive", "shared", "for update"
	Owner  string // who: the owner of the manager
	Token  int64  // the fencing token
	Rows   int64  // how many rows were claimed
	Wait   time.Duration
	Held   time.Duration
	Err    error
}

// Observer gets events as they happen. Every package calls it through [Contain]: one event
// after the other, and the caller that caused an event waits only for a moment.
type Observer interface {
	Observe(ctx context.Context, e Event)
}
