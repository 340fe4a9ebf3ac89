package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// endedCall is a call whose ctx ends before the call has what it asks for.
type endedCall struct {
	do        func(ctx context.Context) error
	waits     bool // for a lock that a rival holds
	saysHeld  bool // the error says too that the lock is held, as the server answered
	noCause   bool // the cause of ctx is not in the error: it can be the loss of another lock
	afterward bool // is done even if ctx has ended before
}

// endedCalls are all calls that take a ctx, for a key that a rival holds, over connections of this server.
func endedCalls(t *testing.T, dsn, through string) map[string]endedCall {
	t.Helper()
	key, own, never := pgtest.Key(t), pgtest.Key(t, "own"), func(context.Context) error { panic("it runs") }
	direct := pgtest.SQLDB(t, pgtest.Through(dsn))
	acquire(t, open(t, direct), key, time.Minute)
	rival, locks := sessions(t, dsn), sessions(t, through)
	if _, err := rival.Acquire(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	db := pgtest.SQLDB(t, pgtest.Through(through))
	leases := open(t, db)
	renewed, released := acquire(t, leases, own, time.Minute), acquire(t, leases, pgtest.Key(t, "released"), time.Minute)
	lock, err := locks.Acquire(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = tx.Rollback(), conn.Close()
	})
	elector := lease.Elector(leases, key, time.Minute)
	only := func(_ any, err error) error { return err }
	return map[string]endedCall{
		"lease TryAcquire":       {do: func(ctx context.Context) error { return only(leases.TryAcquire(ctx, key, time.Minute)) }},
		"lease TryAcquire, slot": {do: func(ctx context.Context) error { return only(leases.TryAcquire(ctx, key, time.Minute, lease.Slots(2))) }},
		"lease Acquire":          {do: func(ctx context.Context) error { return only(leases.Acquire(ctx, key, time.Minute)) }, waits: true},
		"lease Do":               {do: func(ctx context.Context) error { return leases.Do(ctx, key, time.Minute, never) }, waits: true},
		"lease Do, Try":          {do: func(ctx context.Context) error { return leases.Do(ctx, key, time.Minute, never, lease.Try()) }},
		"lease Lead":             {do: func(ctx context.Context) error { return leases.Lead(ctx, key, time.Minute, never) }, waits: true},
		"lease Lead, Try":        {do: func(ctx context.Context) error { return leases.Lead(ctx, key, time.Minute, never, lease.Try()) }},
		"lease Every": {do: func(ctx context.Context) error {
			return leases.Every(ctx, key, lease.Interval(time.Millisecond), func(context.Context, time.Time) error { panic("it runs") })
		}, waits: true},
		"lease Holder":           {do: func(ctx context.Context) error { _, _, err := leases.Holder(ctx, key); return err }},
		"lease Renew":            {do: renewed.Renew, noCause: true},
		"lease Release":          {do: released.Release, noCause: true},
		"lease IsLeader":         {do: elector.IsLeader},
		"sessionlock TryAcquire": {do: func(ctx context.Context) error { return only(locks.TryAcquire(ctx, key)) }},
		"sessionlock Acquire":    {do: func(ctx context.Context) error { return only(locks.Acquire(ctx, key)) }, waits: true},
		"sessionlock Acquire, 2": {do: func(ctx context.Context) error { return only(locks.Acquire(ctx, key, sessionlock.Shared())) }, waits: true},
		"sessionlock AcquireAll": {do: func(ctx context.Context) error { return only(locks.AcquireAll(ctx, key, pgtest.Key(t, "more"))) }, waits: true},
		"sessionlock Do":         {do: func(ctx context.Context) error { return locks.Do(ctx, key, never) }, waits: true},
		"sessionlock Do, Try":    {do: func(ctx context.Context) error { return locks.Do(ctx, key, never, sessionlock.Try()) }},
		"sessionlock Do, renamed": {do: func(ctx context.Context) error {
			return locks.Do(ctx, lockkey.Renamed(pgtest.Key(t, "new"), key), never)
		}, waits: true},
		"sessionlock Release": {do: lock.Release, noCause: true, afterward: true},
		"advisory Acquire":    {do: func(ctx context.Context) error { return advisory.Acquire(ctx, tx, []lockkey.Key{key}) }, waits: true},
		"advisory Acquire, Try": {do: func(ctx context.Context) error {
			return advisory.Acquire(ctx, tx, []lockkey.Key{key}, advisory.Try())
		}},
		"advisory SessionLock": {do: func(ctx context.Context) error { return advisory.SessionLocker(key).SessionLock(ctx, conn) }, waits: true, saysHeld: true},
	}
}

// sessions returns a manager of session locks, closed at the end of the test.
func sessions(t *testing.T, dsn string) *sessionlock.Manager {
	t.Helper()
	m, err := sessionlock.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

var errShutdown = errors.New("the program ends")

// isEnded fails the test unless err is the error of a ctx that was cancelled with errShutdown. The error must not say who holds the lock if the
// server has not said so.
func (c endedCall) isEnded(t *testing.T, err error, held bool) {
	t.Helper()
	if !errors.Is(err, context.Canceled) || !c.noCause && !errors.Is(err, errShutdown) {
		t.Errorf("it is not the error of ctx with its cause: %v", err)
	}
	if errors.Is(err, lease.ErrNotAcquired) != held || errors.Is(err, lease.ErrLost) || errors.Is(err, lease.ErrLockTimeout) || errors.Is(err, lease.ErrReleased) {
		t.Errorf("it says what nobody knows: %v", err)
	}
}

func leaseDSN(t *testing.T) string {
	t.Helper()
	dsn := pgtest.SchemaDSN(t)
	tables(t, pgtest.Through(dsn))
	return dsn
}

// If ctx has ended, its error is returned, whoever holds the lock.
func TestEnded_before(t *testing.T) {
	t.Parallel()
	dsn := leaseDSN(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errShutdown)
	for name, c := range endedCalls(t, dsn, dsn) {
		t.Run(name, func(t *testing.T) {
			if err := c.do(ctx); err != nil || !c.afterward {
				c.isEnded(t, err, false)
			}
		})
	}
}

// The same holds if ctx ends while the call waits for the holder.
func TestEnded_whileItWaits(t *testing.T) {
	t.Parallel()
	dsn := leaseDSN(t)
	for name, c := range endedCalls(t, dsn, dsn) {
		if !c.waits {
			continue
		}
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(100*time.Millisecond, func() { cancel(errShutdown) })
			err := c.do(ctx)
			c.isEnded(t, err, c.saysHeld && errors.Is(err, lease.ErrNotAcquired)) // on a slow machine the server may not have been asked yet
		})
	}
}

// The same holds if ctx ends while the server does not answer, even for calls that do not wait.
func TestEnded_whileTheServerIsSilent(t *testing.T) {
	t.Parallel()
	dsn := leaseDSN(t)
	for name := range endedCalls(t, dsn, dsn) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, through := pgtest.Tap(t, dsn)
			c := endedCalls(t, dsn, through)[name]
			proxy.StallAnswers()
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(100*time.Millisecond, func() { cancel(errShutdown) })
			err := c.do(ctx)
			proxy.Resume()
			c.isEnded(t, err, false)
		})
	}
}
