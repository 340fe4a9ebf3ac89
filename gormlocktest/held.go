package gormlocktest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/otherdb"
	"github.com/gormlock/gormlock/lockkey"
)

// patience is how long a test waits for something that will happen, on a slow machine.
const patience = 30 * time.Second

// Held reports whether any session of the database holds the advisory lock, exclusive or shared: of a transaction, of
// package sessionlock, or of another program. A lockkey.Renamed key stands for two locks, and one of them is enough. A
// lease is a row and not an advisory lock: lease.Manager.Holder says who holds one.
func Held(t testing.TB, pool *sql.DB, key lockkey.Key) bool {
	t.Helper()
	holders, _ := look(t, pool, key)
	return len(holders) > 0
}

// AssertHeld fails the test if nobody holds the advisory lock.
func AssertHeld(t testing.TB, pool *sql.DB, key lockkey.Key) {
	t.Helper()
	if !Held(t, pool, key) {
		t.Errorf("lock %s: nobody holds it", key)
	}
}

// AssertFree fails the test for each of the advisory locks that somebody holds, and says what the holder did last. It
// does not look at leases: it passes while a lease on the key is held.
func AssertFree(t testing.TB, pool *sql.DB, keys ...lockkey.Key) {
	t.Helper()
	for _, key := range keys {
		if holders, _ := look(t, pool, key); len(holders) > 0 {
			t.Errorf("lock %s is held by %s", key, strings.Join(holders, ", "))
		}
	}
}

// WaitBlocked returns when n or more sessions wait for the advisory lock, and ends the test if that does not happen
// within half a minute. Locks of package sessionlock are not seen reliably: they wait in slices, with pauses between
// them, and all callers of one manager are one session. It does not see who waits for a lease.
func WaitBlocked(t testing.TB, pool *sql.DB, key lockkey.Key, n int) {
	t.Helper()
	wait(t, fmt.Sprintf("lock %s: %d sessions to wait for it", key, n), func() (bool, string) {
		holders, waiting := look(t, pool, key)
		return waiting >= n, fmt.Sprintf("%d wait, it is held by [%s]", waiting, strings.Join(holders, ", "))
	})
}

// WaitFree returns when nobody holds the advisory lock, and ends the test if that does not happen within half a minute.
func WaitFree(t testing.TB, pool *sql.DB, key lockkey.Key) {
	t.Helper()
	wait(t, fmt.Sprintf("lock %s to be free", key), func() (bool, string) {
		holders, _ := look(t, pool, key)
		return len(holders) == 0, "it is held by " + strings.Join(holders, ", ")
	})
}

func wait(t testing.TB, what string, happened func() (yes bool, state string)) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		yes, state := happened()
		if yes {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("waited for %s: %v", what, context.Cause(t.Context()))
		case <-limit.C:
			t.Fatalf("waited %s for %s: %s", patience, what, state)
		}
	}
}

// look finds who holds the lock, or one of both locks of a renamed key, and how many wait.
func look(t testing.TB, pool *sql.DB, key lockkey.Key) (holders []string, waiting int) {
	t.Helper()
	mustBeThere(t, pool)
	for _, each := range key.Keys() {
		more, wait := lookAt(t, pool, each)
		holders, waiting = append(holders, more...), waiting+wait
	}
	return holders, waiting
}

func lookAt(t testing.TB, pool *sql.DB, key lockkey.Key) (holders []string, waiting int) {
	t.Helper()
	var class, object uint32
	space := 1
	if id, ok := key.Int64(); ok {
		class, object = uint32(uint64(id)>>32), uint32(uint64(id))
	} else if hi, lo, ok := key.Pair(); ok {
		class, object, space = uint32(hi), uint32(lo), 2
	} else {
		t.Fatal(key.Err())
	}
	if other := otherdb.Under(pool); other != nil {
		t.Fatal(other.Refusal("look for lock "+key.String(), nil))
	}
	// Also when the test is about to end, and its context has: a cleanup wants to know.
	rows, err := pool.QueryContext(context.WithoutCancel(t.Context()), fmt.Sprintf(`
		SELECT granted, format('backend %%s (%%s, %%s, last statement %%s)', pid, mode, coalesce(state, 'unknown'), left(coalesce(query, ''), 200))
		FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)
		WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND classid = %d AND objid = %d AND objsubid = %d ORDER BY pid`, class, object, space))
	if other := otherdb.Said(err); other != nil {
		t.Fatal(other.Refusal("look for lock "+key.String(), err))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var granted bool
		var who string
		if err := rows.Scan(&granted, &who); err != nil {
			t.Fatal(err)
		}
		if granted {
			holders = append(holders, who)
		} else {
			waiting++
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return holders, waiting
}
