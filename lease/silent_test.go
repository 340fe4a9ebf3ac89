package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// On a silent network every call ends, even if its ctx does not.
func TestSilentNetwork_blocksNoCall(t *testing.T) {
	t.Parallel()
	proxy, m, db := tapped(t)
	held := lockkey.Of("held")
	l := acquire(t, m, held, 6*time.Second)
	proxy.Stall()
	ctx := context.Background()
	calls := map[string]func() error{
		"TryAcquire": func() error { _, err := m.TryAcquire(ctx, lockkey.Of("a"), time.Second); return err },
		"TryAcquire with Data": func() error {
			_, err := m.TryAcquire(ctx, lockkey.Of("b"), time.Second, lease.Data([]byte("x")))
			return err
		},
		"TryAcquire of a slot": func() error { _, err := m.TryAcquire(ctx, lockkey.Of("c"), time.Second, lease.Slots(2)); return err },
		"Do with Try":          func() error { return m.Do(ctx, lockkey.Of("d"), time.Second, idle, lease.Try()) },
		"Holder":               func() error { _, _, err := m.Holder(ctx, lockkey.Of("e")); return err },
		"Release":              func() error { return l.Release(ctx) },
	}
	type ended struct {
		call string
		err  error
	}
	ends := make(chan ended, len(calls))
	for name, call := range calls {
		go func() { ends <- ended{name, call()} }()
	}
	for range calls {
		select {
		case e := <-ends:
			if !errors.Is(e.err, context.DeadlineExceeded) || !strings.Contains(e.err.Error(), "no answer from the database within") {
				t.Errorf("%s: %v", e.call, e.err)
			}
		case <-time.After(bound):
			t.Fatal("a call does not end")
		}
	}
	proxy.Cut()
	proxy.Resume()
	// A release without an answer is done later.
	release(t, acquire(t, open(t, db), held, time.Minute))
}
