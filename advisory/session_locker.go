package advisory

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/otherdb"
	"github.com/gormlock/gormlock/lockkey"
)

// KeyLocker takes the session-level lock of a key on a connection that is given to it. It has the shape of the
// SessionLocker of goose: goose.WithSessionLocker(advisory.SessionLocker(key)).
type KeyLocker struct {
	key  lockkey.Key
	opts []Option
}

// SessionLocker returns a locker of key for migration tools, which pass a connection of their own. For everything else
// use package sessionlock. It takes [AllowServer] and [AllowPooler]; any other option, and an invalid key, is the error
// of [KeyLocker.SessionLock].
func SessionLocker(key lockkey.Key, opts ...Option) *KeyLocker {
	return &KeyLocker{key, slices.Clone(opts)}
}

const (
	firstTry   = 10 * time.Millisecond
	longestTry = 250 * time.Millisecond
	// sessionWithin bounds one statement, which waits for no lock.
	sessionWithin = 5 * time.Second
)

var errNilConn = fmt.Errorf("%w: a session lock on a nil *sql.Conn, give it what db.Conn returned", ErrOption)

// SessionLock takes the lock on the session of conn. It waits until ctx ends. It asks again and again and does not
// queue: a blocking wait would hold a snapshot, a CREATE INDEX CONCURRENTLY of the holder would wait for that, and the
// server would end one of them as a deadlock.
//
// If ctx ends first, the error is that of ctx, with its cause. It is [ErrNotAcquired] too if the server has said that
// another session holds the lock.
//
// [ErrStandby]: the server is a standby. [ErrServer]: the server only looks like PostgreSQL. [ErrNotPostgres]: it is another
// database. [ErrPooler]: there is a pooler in between. [ErrHeld]: this session already has the lock. After any other error of
// the server or the connection conn is closed, because it is not known what it holds.
//
// A pooler is noticed only with pgx, or with a wrapper of its connection that has a method Raw. With another driver connect past
// a pooler in transaction mode: the lock would stay with a server connection that others use.
func (l *KeyLocker) SessionLock(ctx context.Context, conn *sql.Conn) error {
	session, err := lockrequest.NewSession(l.key, l.opts...)
	if err != nil {
		return err
	}
	if conn == nil {
		return errNilConn
	}
	backend, other := backendOf(conn)
	if other != nil {
		return other.Refusal("lock "+l.key.String(), nil)
	}
	var held error
	for wait := firstTry; ; wait = min(2*wait, longestTry) {
		if ctx.Err() != nil {
			return session.Ended(ctx, held)
		}
		held = l.do(ctx, conn, func(ctx context.Context, q lockrequest.Queryer) error { return session.Try(ctx, q, backend) })
		switch {
		case errors.Is(held, ErrNotAcquired):
		case !isAnswer(held) && ctx.Err() != nil:
			return session.Ended(ctx, held)
		default:
			return held // nil, if it is acquired
		}
		timer := time.NewTimer(lockrequest.Jitter(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// SessionUnlock releases the lock, even if ctx has ended. [ErrNotHeld]: the session of conn does not have the lock,
// it was released before, or conn is behind a pooler that has changed the session. After any other error conn is
// closed, and the lock goes with it.
func (l *KeyLocker) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	session, err := lockrequest.NewSession(l.key, l.opts...)
	if err != nil {
		return err
	}
	if conn == nil {
		return errNilConn
	}
	if other := otherdb.Under(conn); other != nil {
		return other.Refusal("unlock "+l.key.String(), nil)
	}
	return l.do(ctx, conn, session.Unlock)
}

// backendOf is the server's process that pgx was told of when it connected, 0 if conn is not of pgx, and the database that
// conn leads to if its driver is not of PostgreSQL.
func backendOf(conn *sql.Conn) (pid uint32, other *otherdb.Database) {
	_ = conn.Raw(func(of any) error {
		pid, other = pidOf(otherdb.Innermost(of)), otherdb.OfConn(of)
		return nil
	})
	return pid, other
}

// pidOf is conn.Conn().PgConn().PID() of pgx, by reflection: this package imports no driver.
func pidOf(conn any) uint32 {
	at := reflect.ValueOf(conn)
	for _, name := range []string{"Conn", "PgConn", "PID"} {
		if !at.IsValid() || at.Kind() == reflect.Pointer && at.IsNil() {
			return 0
		}
		method := at.MethodByName(name)
		if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 {
			return 0
		}
		at = method.Call(nil)[0]
	}
	pid, _ := at.Interface().(uint32)
	return pid
}

// do asks once, and does not stop waiting when ctx ends: without the answer it would not be known what the session
// holds.
func (l *KeyLocker) do(ctx context.Context, conn *sql.Conn, ask func(context.Context, lockrequest.Queryer) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionWithin)
	defer cancel()
	err := ask(ctx, conn)
	if !isAnswer(err) {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // closes it
	}
	return err
}

// isAnswer reports whether it is known what the session holds.
func isAnswer(err error) bool {
	for _, known := range []error{ErrNotAcquired, ErrStandby, ErrServer, ErrPooler, ErrHeld, ErrNotHeld, ErrNotPostgres} {
		if errors.Is(err, known) {
			return true
		}
	}
	return err == nil
}
