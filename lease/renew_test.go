package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// tapped returns a manager behind a proxy, and a pool that bypasses the proxy.
func tapped(t testing.TB, opts ...pgtest.Option) (*wiretap.Proxy, *lease.Manager, *sql.DB) {
	t.Helper()
	dsn := pgtest.SchemaDSN(t)
	proxy, through := pgtest.Tap(t, dsn)
	db := tables(t, pgtest.Through(dsn))
	pool := pgtest.SQLDB(t, append([]pgtest.Option{pgtest.Through(through), pgtest.MaxConns(4)}, opts...)...)
	return proxy, open(t, pool), db
}

func isRenewal(sql string) bool {
	return strings.Contains(sql, "SKIP LOCKED") && !strings.HasPrefix(sql, "EXPLAIN")
}

func isAcquire(sql string) bool {
	return strings.HasPrefix(sql, "WITH taken") || strings.HasPrefix(sql, "WITH mine") // of a key that this manager released
}

func TestRenewal_keepsTheLease(t *testing.T) {
	t.Parallel()
	m, rival := rivals(t)
	k := lockkey.Of("report")
	err := m.Do(t.Context(), k, 3*time.Second, func(ctx context.Context) error {
		for end := time.Now().Add(6 * time.Second); time.Now().Before(end); pgtest.Pause(40 * time.Millisecond) {
			if _, err := rival.TryAcquire(t.Context(), k, time.Second); !errors.Is(err, lease.ErrNotAcquired) {
				return fmt.Errorf("the rival: %w, the holder: %w", err, context.Cause(ctx))
			}
		}
		return ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestStatements_oneForEachThing(t *testing.T) {
	t.Parallel()
	proxy, m, _ := tapped(t, pgtest.MaxConns(1))
	release(t, acquire(t, m, lockkey.Of("warm"), time.Minute)) // prepares
	warm := acquire(t, m, lockkey.Of("warm"), time.Minute)
	if err := warm.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	var l *lease.Lease
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"acquire", func() (err error) { l, err = m.Acquire(t.Context(), lockkey.Of("a"), time.Minute); return err }},
		{"acquire again", func() error {
			if _, err := m.TryAcquire(t.Context(), lockkey.Of("a"), time.Minute); !errors.Is(err, lease.ErrNotAcquired) {
				return err
			}
			return nil
		}},
		{"renew", func() error { return l.Renew(t.Context()) }},
		{"release", func() error { return l.Release(t.Context()) }},
	} {
		proxy.Reset()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if n := proxy.RoundTrips(); n != 1 || len(proxy.Statements()) != 1 {
			t.Errorf("%s took %d round trips: %q", step.what, n, proxy.Statements())
		}
	}
	release(t, warm)
}

// All leases of a manager are renewed together, however they were acquired.
func TestRenewal_ofAllInOneStatement(t *testing.T) {
	t.Parallel()
	proxy, m, _ := tapped(t)
	const n = 200
	var leases []*lease.Lease
	for i := range n {
		leases = append(leases, acquire(t, m, lockkey.Of("many", i), 3*time.Second))
	}
	<-time.After(3 * time.Second) // all have been renewed once, and stay together
	proxy.Reset()
	const watched = 4 * time.Second
	<-time.After(watched)
	renewals := 0
	for _, sql := range proxy.Statements() {
		if isRenewal(sql) {
			renewals++
		}
	}
	if renewals == 0 || renewals > 15 {
		t.Errorf("%d leases of 3s were renewed by %d statements in %s", n, renewals, watched)
	}
	for _, l := range leases {
		if err := l.Err(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d leases of 3s: %d statements in %s", n, renewals, watched)
}

// Renewals are cut off while the work goes on: its ctx ends before anybody else can have the lease.
func TestRenewal_cutOffTheHolderKnowsFirst(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*wiretap.Proxy){
		"stalled":            (*wiretap.Proxy).Stall,
		"requests get lost":  (*wiretap.Proxy).StallRequests,
		"refused and reset":  func(p *wiretap.Proxy) { p.Refuse(); p.ResetConnections() },
		"cut off the client": func(p *wiretap.Proxy) { p.Refuse(); p.CutClients() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, m, db := tapped(t)
			rival := open(t, db)
			k := lockkey.Of("report")
			l := acquire(t, m, k, 1500*time.Millisecond)
			bound, stop := l.Bind(t.Context())
			defer stop()
			cut(proxy)
			var known, late bool
			until := l.Until()
			got := make(chan *lease.Lease)
			go func() {
				next, err := rival.Acquire(t.Context(), k, time.Minute)
				if err != nil {
					t.Error(err)
				}
				late = bound.Err() == nil && time.Since(until) > time.Second // timers of a busy machine are late, but not that much
				known = l.Err() != nil
				got <- next
			}()
			pgtest.Await(t, "the end of the ctx", bound.Done())
			if !errors.Is(context.Cause(bound), lease.ErrLost) || !strings.Contains(l.Err().Error(), "no renewal was confirmed for 1.47s") {
				t.Errorf("%v", l.Err())
			}
			release(t, <-got)
			if !known || late {
				t.Errorf("somebody else had it before its holder knew, or its ctx went on: %v, %v", !known, late)
			}
			proxy.Resume()
			proxy.Admit()
		})
	}
}

// A renewal whose answer comes after the end extends nothing here, although the database extended the lease.
func TestRenewal_lateAnswerDoesNotExtend(t *testing.T) {
	t.Parallel()
	proxy, m, db := tapped(t)
	rival := open(t, db)
	k := lockkey.Of("report")
	l := acquire(t, m, k, 3*time.Second, lease.NoRenewal())
	until := l.Until()
	<-time.After(1500 * time.Millisecond)
	proxy.OnQuery(func(sql string) wiretap.Action {
		if isRenewal(sql) {
			return wiretap.HoldAnswer
		}
		return wiretap.Pass
	})
	renewed := make(chan error)
	go func() { renewed <- l.Renew(t.Context()) }()
	pgtest.Await(t, "Lost", l.Lost())
	if late := time.Since(until); late > 300*time.Millisecond {
		t.Logf("the machine is slow: %s", late)
	}
	if h, held, err := rival.Holder(t.Context(), k); err != nil || !held {
		t.Errorf("the database renewed it, so it is still taken there: %+v, %v, %v", h, held, err)
	}
	proxy.OnQuery(nil)
	proxy.Resume()
	if err := <-renewed; !errors.Is(err, lease.ErrLost) {
		t.Errorf("Renew: %v", err)
	}
	if err := l.Err(); !errors.Is(err, lease.ErrLost) {
		t.Errorf("Err: %v", err)
	}
	// The holder releases the lease, so nobody uses the rest of the renewed time.
	if err := l.Release(t.Context()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("Release: %v", err)
	}
}

// If the answer to an acquisition comes after its end, the lease is not acquired, and is given back.
func TestAcquire_lateAnswerIsNotBelieved(t *testing.T) {
	t.Parallel()
	proxy, m, _ := tapped(t)
	k := lockkey.Of("report")
	release(t, acquire(t, m, k, time.Minute))
	var held atomic.Int32
	proxy.OnQuery(func(sql string) wiretap.Action {
		if isAcquire(sql) && held.Add(1) == 1 {
			time.AfterFunc(700*time.Millisecond, proxy.Resume)
			return wiretap.HoldAnswer
		}
		return wiretap.Pass
	})
	began := time.Now()
	l := acquire(t, m, k, 500*time.Millisecond)
	if held.Load() < 2 || time.Since(began) < 700*time.Millisecond {
		t.Errorf("believed after %s, at the first of %d answers", time.Since(began), held.Load())
	}
	release(t, l)
}

// After an error the lease is never held: if the server granted it and the answer was lost, it is given back long before its end.
func TestAcquire_unansweredIsGivenBack(t *testing.T) {
	t.Parallel()
	proxy, m, db := tapped(t)
	rival := open(t, db)
	for name, action := range map[string]wiretap.Action{"cut": wiretap.CutAnswer, "held": wiretap.HoldAnswer} {
		k := lockkey.Of("report", name)
		proxy.OnQuery(func(sql string) wiretap.Action {
			if isAcquire(sql) {
				return action
			}
			return wiretap.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		l, err := m.TryAcquire(ctx, k, 10*time.Minute)
		cancel()
		if err == nil {
			t.Fatalf("%s: %v", name, l.Token())
		}
		proxy.OnQuery(nil)
		next := acquire(t, rival, k, time.Minute) // within its bound of 30 s
		if next.Token().Number&(1<<40-1) < 2 {
			t.Errorf("%s: the server had granted nothing: %v", name, next.Token())
		}
		release(t, next)
	}
}

func TestRelease_unansweredIsMadeUpFor(t *testing.T) {
	t.Parallel()
	proxy, m, db := tapped(t)
	k := lockkey.Of("report")
	l := acquire(t, m, k, 10*time.Minute)
	proxy.Refuse()
	proxy.ResetConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := l.Release(ctx); err == nil || errors.Is(err, lease.ErrLost) || !strings.Contains(err.Error(), "not confirmed") {
		t.Errorf("%v", err)
	}
	proxy.Admit()
	release(t, acquire(t, open(t, db), k, time.Minute))
}

// A locked row does not keep the other leases from being renewed.
func TestRenewal_ofOthersThanALockedRow(t *testing.T) {
	t.Parallel()
	db := tables(t)
	m := open(t, db)
	locked, free, brief := lockkey.Of("locked"), lockkey.Of("free"), lockkey.Of("brief")
	leases := map[lockkey.Key]*lease.Lease{}
	for _, k := range []lockkey.Key{locked, free, brief} {
		leases[k] = acquire(t, m, k, 3*time.Second)
	}
	lock := func(k lockkey.Key) *sql.Tx {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		id, _ := k.Int64()
		if _, err := tx.ExecContext(t.Context(), "SELECT 1 FROM gormlock_lease WHERE id = $1 FOR UPDATE", id); err != nil {
			t.Fatal(err)
		}
		return tx
	}
	long, short := lock(locked), lock(brief)
	defer func() { _ = long.Rollback() }()
	<-time.After(1300 * time.Millisecond) // one renewal has skipped it
	if err := short.Rollback(); err != nil {
		t.Fatal(err)
	}
	pgtest.Await(t, "the loss of the locked one", leases[locked].Lost())
	<-time.After(time.Second)
	for _, k := range []lockkey.Key{free, brief} {
		if err := leases[k].Err(); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
}

// If all connections of the pool are taken, nothing is renewed, and the holder is told in time.
func TestRenewal_withoutAConnectionIsALoss(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	rival := open(t, tables(t, pgtest.Through(dsn)))
	db := tables(t, pgtest.Through(dsn), pgtest.MaxConns(1))
	m := open(t, db)
	k := lockkey.Of("report")
	l := acquire(t, m, k, 500*time.Millisecond)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Await(t, "Lost", l.Lost())
	release(t, acquire(t, rival, k, time.Minute))
	_ = conn.Close()
}
