package sessionlock_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// line is a process in which n goroutines queue for k after first, one after the other. Each reports its number when it has the lock, and releases
// it.
func line(t *testing.T, m *sessionlock.Manager, k lockkey.Key, n int, said chan<- string, opts ...sessionlock.AcquireOption) {
	t.Helper()
	for i := range n {
		arrived := sessionlock.Arrivals(m)
		go func() {
			l, err := m.Acquire(t.Context(), k, opts...)
			if err != nil {
				t.Error(err)
				said <- "nobody"
				return
			}
			said <- fmt.Sprint(i)
			release(t, l)
		}()
		for sessionlock.Arrivals(m) == arrived {
			<-time.After(100 * time.Microsecond)
		}
	}
}

// Waiters of one process get the key in the order in which they came. A waiter of another process gets its turn among them.
func TestHandOver_isInOrderAndBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts   []sessionlock.AcquireOption
		before int // how many of this process go before the other one
	}{
		"preferred": {nil, 16},
		"Fair":      {[]sessionlock.AcquireOption{sessionlock.Fair()}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 60
			m := open(t)
			k := pgtest.Key(t)
			first := acquire(t, m, k)
			said := make(chan string, n+1)
			line(t, m, k, n, said, c.opts...)
			rival := pgtest.Conn(t)
			id, _ := k.Int64()
			done := make(chan error, 1)
			go func() {
				_, err := rival.Exec(t.Context(), "SELECT pg_advisory_lock($1)", id)
				said <- "other"
				if err == nil {
					_, err = rival.Exec(t.Context(), "SELECT pg_advisory_unlock($1)", id)
				}
				done <- err
			}()
			pgtest.WaitBlocked(t, k, 1)
			release(t, first)
			var order []string
			for range n + 1 {
				order = append(order, <-said)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			at := slices.Index(order, "other")
			if at != c.before {
				t.Errorf("%d of the process went before the other: %v", at, order)
			}
			order = slices.Delete(order, at, at+1)
			for i, who := range order {
				if who != fmt.Sprint(i) {
					t.Fatalf("not in the order they came: %v", order)
				}
			}
		})
	}
}
