package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

func TestRelease_onceAndOnlyItsOwn(t *testing.T) {
	t.Parallel()
	db := tables(t)
	a, b := open(t, db), open(t, db)
	k := lockkey.Of("report")
	l := acquire(t, a, k, time.Minute)
	release(t, l)
	if err := l.Release(t.Context()); !errors.Is(err, lease.ErrReleased) || !errors.Is(l.Err(), lease.ErrReleased) {
		t.Errorf("again: %v, Err is %v", err, l.Err())
	}
	if err := l.Renew(t.Context()); !errors.Is(err, lease.ErrReleased) {
		t.Errorf("renewed after that: %v", err)
	}
	select {
	case <-l.Lost():
		t.Error("what was released is lost")
	default:
	}

	l = acquire(t, a, k, time.Minute)
	superseded(t, db, k)
	before := row(t, db, k)
	if err := l.Release(t.Context()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("Release of what is somebody else's: %v", err)
	}
	pgtest.Await(t, "Lost", l.Lost())
	if after := row(t, db, k); after != before {
		t.Errorf("the row of the other one changed from %s to %s", before, after)
	}
	if _, err := b.TryAcquire(t.Context(), k, time.Minute); !errors.Is(err, lease.ErrNotAcquired) {
		t.Errorf("the other one's lease: %v", err)
	}
}

// superseded gives the lease to another holder without the knowledge of its holder.
func superseded(t testing.TB, db *sql.DB, k lockkey.Key) {
	t.Helper()
	id, _ := k.Int64()
	if _, err := db.ExecContext(t.Context(), "UPDATE gormlock_lease SET holder = 'somebody else', expires_at = now() + interval '1 hour' WHERE id = $1", id); err != nil {
		t.Fatal(err)
	}
}

// row is the row of a key, as text.
func row(t testing.TB, db *sql.DB, k lockkey.Key) (text string) {
	t.Helper()
	id, _ := k.Int64()
	if err := db.QueryRowContext(t.Context(), "SELECT l::text || xmin FROM gormlock_lease l WHERE id = $1", id).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRenew_makesItRunAgain(t *testing.T) {
	t.Parallel()
	db := tables(t)
	m := open(t, db)
	l := acquire(t, m, lockkey.Of("report"), 2*time.Second, lease.NoRenewal())
	first := l.Until()
	<-time.After(50 * time.Millisecond)
	if err := l.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if gained := l.Until().Sub(first); gained < 40*time.Millisecond {
		t.Errorf("gained %s", gained)
	}
	superseded(t, db, l.Key())
	if err := l.Renew(t.Context()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("Renew of what is somebody else's: %v", err)
	}
	pgtest.Await(t, "Lost", l.Lost())
}

// Until is always earlier than the end in the database.
func TestUntil_isBeforeTheDatabaseLetsAnybodyElseHaveIt(t *testing.T) {
	t.Parallel()
	db := tables(t)
	m := open(t, db)
	for range 20 {
		l := acquire(t, m, lockkey.Of("report"), time.Second)
		until := l.Until()
		_, _, err := m.Holder(t.Context(), l.Key())
		if err != nil {
			t.Fatal(err)
		}
		var expires time.Time
		if err := db.QueryRowContext(t.Context(), "SELECT expires_at FROM gormlock_lease").Scan(&expires); err != nil {
			t.Fatal(err)
		}
		if early := expires.Sub(until); early < 20*time.Millisecond { // one machine, one clock
			t.Errorf("believed in until %s before the end", early)
		}
		release(t, l)
	}
}

func TestAtLeast_outlivesTheReleaseAndTheHolder(t *testing.T) {
	t.Parallel()
	m := open(t, tables(t))
	k := lockkey.Of("nightly")
	const atLeast = 600 * time.Millisecond
	began := time.Now()
	l := acquire(t, m, k, time.Minute, lease.AtLeast(atLeast))
	release(t, l)
	if _, err := m.TryAcquire(t.Context(), k, time.Minute); !errors.Is(err, lease.ErrNotAcquired) && time.Since(began) < atLeast {
		t.Errorf("after the release: %v", err)
	}
	if err := l.Release(t.Context()); !errors.Is(err, lease.ErrReleased) {
		t.Errorf("released again: %v", err)
	}
	next := acquire(t, m, k, time.Minute)
	if taken := time.Since(began); taken < atLeast || taken > bound {
		t.Errorf("it was free after %s", taken)
	}
	release(t, next)

	late := acquire(t, m, k, time.Minute, lease.AtLeast(time.Millisecond))
	<-time.After(5 * time.Millisecond)
	release(t, late)
	release(t, tryAcquire(t, m, k))
}

func TestData_isReadByOthers(t *testing.T) {
	t.Parallel()
	db := tables(t)
	a, b := open(t, db, lease.Owner("node-1")), open(t, db)
	k := lockkey.Of("leader")
	if _, held, err := b.Holder(t.Context(), k); held || err != nil {
		t.Errorf("nobody holds it: %v, %v", held, err)
	}
	address := []byte("10.0.0.1:80")
	data := lease.Data(address)
	address[0] = 'X'
	l := acquire(t, a, k, time.Minute, data)
	h, held, err := b.Holder(t.Context(), k)
	if err != nil || !held || h.Owner != "node-1" || string(h.Data) != "10.0.0.1:80" || h.Remains <= 0 || h.Remains > time.Minute || h.Held < 0 {
		t.Errorf("%+v, %v, %v", h, held, err)
	}
	release(t, l)
	if _, held, err := b.Holder(t.Context(), k); held || err != nil {
		t.Errorf("nobody holds it any more: %v, %v", held, err)
	}
	l = acquire(t, b, k, time.Minute)
	if h, _, _ := a.Holder(t.Context(), k); h.Data != nil {
		t.Errorf("the data of the one before: %q", h.Data)
	}
	release(t, l)
}

var errWork = errors.New("work")

func TestDo(t *testing.T) {
	t.Parallel()
	db := tables(t)
	m := open(t, db)
	k := lockkey.Of("report", 7)

	t.Run("carries the token and gives back", func(t *testing.T) {
		var carried []fence.Token
		err := m.Do(t.Context(), k, time.Minute, func(ctx context.Context) error {
			carried = fence.ByTopic(ctx, "report")
			return nil
		})
		if err != nil || len(carried) != 1 || carried[0].Number == 0 || carried[0].Name != "report/7" {
			t.Errorf("%v, %v", carried, err)
		}
		release(t, acquire(t, m, k, time.Minute))
	})
	t.Run("returns the error of the work", func(t *testing.T) {
		if err := m.Do(t.Context(), k, time.Minute, func(context.Context) error { return errWork }); !errors.Is(err, errWork) || errors.Is(err, lease.ErrLost) {
			t.Errorf("%v", err)
		}
	})
	t.Run("says that it was lost, whatever the work says", func(t *testing.T) {
		for _, work := range []error{nil, errWork} {
			err := m.Do(t.Context(), k, time.Minute, func(context.Context) error {
				superseded(t, db, k)
				return work
			})
			if !errors.Is(err, lease.ErrLost) || work != nil && !errors.Is(err, work) {
				t.Errorf("%v", err)
			}
			forget(t, db)
		}
	})
	t.Run("ends the ctx with the lease", func(t *testing.T) {
		err := m.Do(t.Context(), k, 3*time.Second, func(ctx context.Context) error { // long enough that even a busy machine renews it in time
			superseded(t, db, k)
			pgtest.Await(t, "the end of the ctx", ctx.Done())
			return context.Cause(ctx)
		})
		if !errors.Is(err, lease.ErrLost) || !strings.Contains(err.Error(), "somebody else's") {
			t.Errorf("%v", err)
		}
		forget(t, db)
	})
	t.Run("gives back after a panic", func(t *testing.T) {
		func() {
			defer func() { _ = recover() }()
			_ = m.Do(t.Context(), k, time.Minute, func(context.Context) error { panic("work") })
		}()
		release(t, acquire(t, m, k, time.Minute))
	})
	t.Run("gives back after its ctx has ended", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		err := m.Do(ctx, k, time.Minute, func(ctx context.Context) error {
			cancel()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		release(t, tryAcquire(t, m, k))
	})
}

// forget frees a lease that superseded gave away.
func forget(t testing.TB, db *sql.DB) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), "UPDATE gormlock_lease SET expires_at = now()"); err != nil {
		t.Fatal(err)
	}
}

func TestBind_endsWithTheLease(t *testing.T) {
	t.Parallel()
	m := open(t, tables(t))
	l := acquire(t, m, lockkey.Of("report"), time.Minute)
	bound1, stop := l.Bind(t.Context())
	bound2, _ := l.Bind(t.Context())
	stop()
	if err := bound1.Err(); err == nil || errors.Is(context.Cause(bound1), lease.ErrReleased) {
		t.Errorf("stopped: %v, %v", err, context.Cause(bound1))
	}
	if bound2.Err() != nil {
		t.Error("one stop ended the other")
	}
	release(t, l)
	if !errors.Is(context.Cause(bound2), lease.ErrReleased) {
		t.Errorf("released: %v", context.Cause(bound2))
	}
	bound3, stop := l.Bind(t.Context())
	defer stop()
	if !errors.Is(context.Cause(bound3), lease.ErrReleased) {
		t.Errorf("bound after the release: %v", context.Cause(bound3))
	}
}

func TestClose_tellsHoldersAndGivesBack(t *testing.T) {
	t.Parallel()
	db := tables(t)
	rival := open(t, db)
	m, err := lease.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	a, b := lockkey.Of("a"), lockkey.Of("b")
	la := acquire(t, m, a, time.Minute)
	acquire(t, m, b, time.Minute)
	held := acquire(t, rival, lockkey.Of("c"), time.Minute)
	waiting := make(chan error)
	asked := make(chan struct{})
	go func() {
		_, err := m.Acquire(&signalling{Context: t.Context(), asked: asked}, held.Key(), time.Minute)
		waiting <- err
	}()
	pgtest.Await(t, "the waiter", asked)
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	pgtest.Await(t, "Lost", la.Lost())
	if err := la.Err(); !errors.Is(err, lease.ErrLost) || !errors.Is(err, lease.ErrClosed) {
		t.Errorf("Err is %v", err)
	}
	if err := <-waiting; !errors.Is(err, lease.ErrClosed) {
		t.Errorf("who waits gets %v", err)
	}
	if _, err := m.TryAcquire(t.Context(), a, time.Minute); !errors.Is(err, lease.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Errorf("again: %v", err)
	}
	for _, k := range []lockkey.Key{a, b} {
		release(t, tryAcquire(t, rival, k))
	}
	release(t, held)
	if err := db.PingContext(t.Context()); err != nil { // W4
		t.Errorf("the pool is the caller's: %v", err)
	}
}
