package lease_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// A lease can be as long as a Duration allows: it is held, renewed, kept apart from slots, and named in the errors of others.
func TestAcquire_longerThanACentury(t *testing.T) {
	t.Parallel()
	db := tables(t)
	a, b := open(t, db, lease.Owner("archive-1")), open(t, db)
	for name, ttl := range map[string]time.Duration{
		"a century and a day": 100*365*24*time.Hour + 24*time.Hour, "the longest": math.MaxInt64,
	} {
		for _, opts := range [][]lease.AcquireOption{nil, {lease.Data([]byte("x"))}, {lease.NoRenewal()}, {lease.Slots(1)}, {lease.AtLeast(time.Microsecond)}} {
			k := lockkey.Of("archive", name, len(opts))
			held := acquire(t, a, k, ttl, opts...)
			for i, try := range [][]lease.AcquireOption{nil, {lease.Data([]byte("x"))}, {lease.Slots(1)}, nil} {
				if _, err := b.TryAcquire(t.Context(), k, time.Minute, try...); !errors.Is(err, lease.ErrNotAcquired) || !strings.Contains(err.Error(), `"archive-1"`) {
					t.Errorf("%s, try %d: %v", name, i, err)
				}
			}
			if h, is, err := b.Holder(t.Context(), k); err != nil || !is || h.Owner != "archive-1" || h.Remains < ttl-time.Hour {
				t.Errorf("%s: the holder is %+v, %v, %v", name, h, is, err)
			}
			if err := held.Renew(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			release(t, held)
			release(t, acquire(t, b, k, time.Minute, opts...))
		}
	}
}

// A lock that a Java process, or a person, has taken for centuries is refused, and the error has its owner.
func TestShedLock_lockedForCenturies(t *testing.T) {
	t.Parallel()
	_, j, m := shedlock(t)
	for name, d := range map[string]time.Duration{"two": 200 * 365 * 24 * time.Hour, "three": math.MaxInt64} {
		j.run(javaInsert, name, d)
		j.run("UPDATE shedlock SET lock_until = lock_until + make_interval(secs => $2) WHERE name = $1 AND locked_by = $3", name, d)
		if _, err := m.TryAcquire(t.Context(), lockkey.Of(name), time.Minute); !errors.Is(err, lease.ErrNotAcquired) || !strings.Contains(err.Error(), `"java-host" holds it for 2562047h`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
