package fault

import (
	"errors"
	"fmt"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/otherdb"
)

// The sentinels. The root package declares each again, with its meaning for callers.
var (
	ErrNotInstalled   = errors.New("gormlock: the plugin is not installed, call db.Use(gormlock.New())")
	ErrNotPostgres    = otherdb.ErrNotPostgres
	ErrNoTransaction  = errors.New("gormlock: no transaction is open, run this inside db.Transaction")
	ErrSubQuery       = errors.New("gormlock: a lock on a sub-query or a group of conditions is never taken, put it on the statement around it")
	ErrStale          = errors.New("gormlock: stale version")
	ErrVersionMissing = errors.New("gormlock: version missing")
	ErrFenced         = errors.New("gormlock: fenced")
	ErrFenceMissing   = errors.New("gormlock: fencing token missing")
	ErrOtherRequest   = errors.New("gormlock: the key belongs to another request")

	ErrOption      = advisory.ErrOption
	ErrNotAcquired = advisory.ErrNotAcquired
	ErrLockTimeout = advisory.ErrLockTimeout
)

// NoLocks is the error of locks of keys on a database that has none.
func NoLocks(database string, locks fmt.Stringer) error {
	inTests := ""
	if database == "sqlite" {
		inTests = "; in tests gormlocktest.PretendLocks(db) keeps it in memory"
	}
	return fmt.Errorf("%w, not %s: lock %s%s", ErrNotPostgres, database, locks, inTests)
}

// Because returns err without its prefix "gormlock: ", for the end of a longer text with that prefix.
func Because(err error) error { return cause.Because(err) }
