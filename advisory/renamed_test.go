package advisory_test

import (
	"errors"
	"testing"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// A fleet that changes its keys in two steps excludes itself all the time: old with renamed, renamed with new, and the
// renamed ones whichever way round each names them.
func TestRenamed_takesBoth(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t)
	before, after := pgtest.Key(t, "before"), pgtest.Key(t, "after")
	renamed := lockkey.Renamed(after, before)
	for _, c := range []struct {
		first, second lockkey.Key
		excluded      bool
	}{
		{before, renamed, true}, {renamed, before, true}, {renamed, after, true}, {after, renamed, true}, {renamed, renamed, true},
		{renamed, lockkey.Renamed(before, after), true}, {before, after, false}, // which is why the whole fleet takes the step
	} {
		tx, other := begin(t, db, nil), begin(t, db, nil)
		if err := advisory.Acquire(t.Context(), tx, []lockkey.Key{c.first}); err != nil {
			t.Fatal(err)
		}
		err := advisory.Acquire(t.Context(), other, []lockkey.Key{c.second}, advisory.Try())
		if errors.Is(err, advisory.ErrNotAcquired) != c.excluded || err != nil && !c.excluded {
			t.Errorf("%s, then %s: %v", c.first, c.second, err)
		}
		if err := errors.Join(tx.Rollback(), other.Rollback()); err != nil {
			t.Error(err)
		}
		locker, conn, rival := advisory.SessionLocker(c.first), session(t, db), begin(t, db, nil)
		if err := locker.SessionLock(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		err = advisory.Acquire(t.Context(), rival, []lockkey.Key{c.second}, advisory.Try())
		if errors.Is(err, advisory.ErrNotAcquired) != c.excluded {
			t.Errorf("the session lock of %s, then %s: %v", c.first, c.second, err)
		}
		if err := errors.Join(locker.SessionUnlock(t.Context(), conn), rival.Rollback(), conn.Close()); err != nil {
			t.Error(err)
		}
	}
}
