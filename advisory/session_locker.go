package advisory

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/lockkey"
)

// KeyLocker takes the session-level lock of a key on a connection that is given to it. It has the shape of the
// SessionLocker of goose: goose.WithSessionLocker(advisory.SessionLocker(key)).
type KeyLocker struct{ key lockkey.Key }

// SessionLocker returns what takes the session-level lock of key for migration tools, which bring a connection of their
// own. Package sessionlock is for everything else. An invalid key is the error of [KeyLocker.SessionLock].
func SessionLocker(key lockkey.Key) *KeyLocker { return &KeyLocker{key} }

const (
	firstTry   = 10 * time.Millisecond
	longestTry = 250 * time.Millisecond
	// sessionWithin bounds one statement, which waits for no lock.
	sessionWithin = 5 * time.Second
)

// SessionLock takes the lock on the session of conn, waiting for it as long as ctx lets it. It asks again and again and
// waits in no queue: a blocking wait would hold a snapshot, for which a CREATE INDEX CONCURRENTLY of the holder waits,
// and the server ends one of them as a deadlock.
//
// [ErrNotAcquired]: ctx ended first; the error is that of ctx as well. [ErrStandby]: the server is a standby. [ErrServer]:
// it is no PostgreSQL.
// [ErrHeld]: this session has the lock already. After any other error conn is closed, for it is not known what
// it holds. Behind a pooler in transaction mode no session lock can be held: connect past it.
func (l *KeyLocker) SessionLock(ctx context.Context, conn *sql.Conn) error {
	session, err := lockrequest.NewSession(l.key)
	if err != nil {
		return err
	}
	for wait := firstTry; ; wait = min(2*wait, longestTry) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("gormlock: lock %s: %w: %w", l.key, ErrNotAcquired, err)
		}
		switch err := l.do(ctx, conn, session.Try); {
		case err == nil:
			return nil
		case !errors.Is(err, ErrNotAcquired):
			return err
		}
		timer := time.NewTimer(lockrequest.Jitter(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// SessionUnlock gives the lock back. It does so though ctx has ended. [ErrNotHeld]: the session of conn does not have
// the lock, it was given back before, or conn is behind a pooler that has changed the session. After any other
// error conn is closed, and the lock goes with it.
func (l *KeyLocker) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	session, err := lockrequest.NewSession(l.key)
	if err != nil {
		return err
	}
	return l.do(ctx, conn, session.Unlock)
}

// do asks once, apart from the time that ctx leaves: an answer that was not waited for leaves a session behind
// of which nobody knows what it holds.
func (l *KeyLocker) do(ctx context.Context, conn *sql.Conn, ask func(context.Context, lockrequest.Queryer) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionWithin)
	defer cancel()
	err := ask(ctx, conn)
	if err == nil || errors.Is(err, ErrNotAcquired) || errors.Is(err, ErrStandby) || errors.Is(err, ErrServer) || errors.Is(err, ErrHeld) || errors.Is(err, ErrNotHeld) {
		return err
	}
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes it
	return err
}
