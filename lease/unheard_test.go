package lease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// A lease whose grant was not heard of is never taken for somebody else's, and is free again soon. So it is in the simple protocol, where pgx
// says that the statement was not sent.
func TestAcquire_unheard(t *testing.T) {
	t.Parallel()
	for mode, opts := range map[string][]pgtest.Option{"cached": nil, "simple": {pgtest.SimpleProtocol()}, "a wrapper": {pgtest.SimpleProtocol(), pgtest.Wrapped()}} {
		for kind, asked := range map[string][]lease.AcquireOption{"alone": nil, "again": nil, "slots": {lease.Slots(1)}, "data": {lease.Data([]byte("x"))}} {
			t.Run(mode+"/"+kind, func(t *testing.T) {
				t.Parallel()
				proxy, m, _ := tapped(t, opts...)
				k := lockkey.Of("report")
				text := `INSERT INTO "gormlock_lease"`
				if kind == "again" {
					release(t, acquire(t, m, k, time.Hour))
					text = `UPDATE "gormlock_lease" l SET name`
				}
				loseOneAnswer(proxy, text)
				if _, err := m.TryAcquire(t.Context(), k, time.Hour, asked...); err == nil || errors.Is(err, lease.ErrNotAcquired) {
					t.Errorf("the answer is lost: %v", err)
				}
				release(t, acquire(t, m, k, time.Hour, append(asked, lease.Timeout(bound))...)) // which would be held for an hour
			})
		}
	}
}

// A release that is not heard of is not a loss, and is sent again: the server may not have seen it.
func TestRelease_unheard(t *testing.T) {
	t.Parallel()
	for mode, opts := range map[string][]pgtest.Option{"cached": nil, "simple": {pgtest.SimpleProtocol()}, "a wrapper": {pgtest.SimpleProtocol(), pgtest.Wrapped()}} {
		for lost, act := range map[string]wiretap.Action{"the request": wiretap.CutRequest, "the answer": wiretap.CutAnswer} {
			t.Run(mode+"/"+lost, func(t *testing.T) {
				t.Parallel()
				proxy, m, _ := tapped(t, opts...)
				k := lockkey.Of("report")
				l := acquire(t, m, k, time.Hour)
				onFirst(proxy, "holder = ''", act)
				if err := l.Release(t.Context()); errors.Is(err, lease.ErrLost) || (err == nil) == (act == wiretap.CutAnswer) {
					t.Error(err)
				}
				release(t, tryAcquire(t, m, k))
			})
		}
	}
}
