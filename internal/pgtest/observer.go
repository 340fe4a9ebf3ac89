package pgtest

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/gormlock/gormlock/lockkey"
)

// Lock is an advisory lock as pg_locks shows it.
type Lock struct {
	PID     int
	Mode    string // ExclusiveLock or ShareLock
	Granted bool
}

// Observer looks at a database from outside, on its own connections. The functions of this package with the names of its methods look at the
// database of the test binary.
type Observer struct {
	db *sql.DB
}

// Observe returns an observer of another database, such as one of a Fresh server.
func Observe(t testing.TB, dsn string) *Observer {
	t.Helper()
	o, err := newObserver(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.db.Close() })
	return o
}

func newObserver(dsn string) (*Observer, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["application_name"] = "pgtest observer"
	// The server may have been restarted since a connection was last used.
	db := stdlib.OpenDB(*config, stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return true }))
	db.SetMaxOpenConns(8)
	return &Observer{db}, nil
}

func observer(t testing.TB) *Observer {
	t.Helper()
	DSN(t)
	return home.observer
}

// Locks returns the locks on key and the requests for it that wait, oldest backend first.
func Locks(t testing.TB, key lockkey.Key) []Lock {
	t.Helper()
	return observer(t).Locks(t, key)
}

// Held reports whether anybody holds key.
func Held(t testing.TB, key lockkey.Key) bool {
	t.Helper()
	return observer(t).Held(t, key)
}

// WaitBlocked waits until n requests wait for key. If that takes too long, the test fails, and says what was seen instead.
func WaitBlocked(t testing.TB, key lockkey.Key, n int) {
	t.Helper()
	observer(t).WaitBlocked(t, key, n)
}

// AssertFree fails the test if one of the keys is held. Sessions that have just ended get a moment to free theirs.
func AssertFree(t testing.TB, keys ...lockkey.Key) {
	t.Helper()
	observer(t).AssertFree(t, keys...)
}

// WaitBackendBlocked waits until a backend waits for a lock of any kind.
func WaitBackendBlocked(t testing.TB, pid int) {
	t.Helper()
	observer(t).WaitBackendBlocked(t, pid)
}

// Kill ends a backend and returns when it is gone.
func Kill(t testing.TB, pid int) {
	t.Helper()
	observer(t).Kill(t, pid)
}

// Locks returns the locks on key and the requests for it that wait, by pid.
func (o *Observer) Locks(t testing.TB, key lockkey.Key) []Lock {
	t.Helper()
	locks, err := o.locks(key)
	if err != nil {
		t.Fatal(err)
	}
	return locks
}

// Held reports whether anybody holds key.
func (o *Observer) Held(t testing.TB, key lockkey.Key) bool {
	t.Helper()
	return len(granted(o.Locks(t, key))) > 0
}

// WaitBlocked waits until n requests wait for key. If that takes too long, the test fails, and says what was seen instead.
func (o *Observer) WaitBlocked(t testing.TB, key lockkey.Key, n int) {
	t.Helper()
	var seen []Lock
	err := poll(context.Background(), bound, func() (done bool, err error) {
		seen, err = o.locks(key)
		return len(seen)-len(granted(seen)) >= n, err
	})
	if err != nil {
		t.Fatalf("%d requests that wait for %s: %v, there are %+v", n, key, err, seen)
	}
}

// AssertFree fails the test if one of the keys is held. Sessions that have just ended get a moment to free theirs.
func (o *Observer) AssertFree(t testing.TB, keys ...lockkey.Key) {
	t.Helper()
	for _, key := range keys {
		var seen []Lock
		err := poll(context.Background(), 5*time.Second, func() (done bool, err error) {
			seen, err = o.locks(key)
			return len(seen) == 0, err
		})
		if err != nil {
			t.Errorf("%s should be free: %v, there are %+v", key, err, seen)
		}
	}
}

// WaitBackendBlocked waits until a backend waits for a lock of any kind.
func (o *Observer) WaitBackendBlocked(t testing.TB, pid int) {
	t.Helper()
	err := poll(context.Background(), bound, func() (blocked bool, err error) {
		err = o.db.QueryRow("select cardinality(pg_blocking_pids($1)) > 0", pid).Scan(&blocked)
		return blocked, err
	})
	if err != nil {
		t.Fatalf("backend %d that is blocked: %v, its activity: %s", pid, err, o.activity(pid))
	}
}

// Kill ends a backend and returns when it is gone.
func (o *Observer) Kill(t testing.TB, pid int) {
	t.Helper()
	var known bool
	if err := o.db.QueryRow("select pg_terminate_backend($1)", pid).Scan(&known); err != nil {
		t.Fatal(err)
	}
	if !known {
		t.Fatalf("there is no backend %d to kill", pid)
	}
	err := poll(context.Background(), bound, func() (gone bool, err error) {
		err = o.db.QueryRow("select not exists (select from pg_stat_activity where pid = $1)", pid).Scan(&gone)
		return gone, err
	})
	if err != nil {
		t.Fatalf("backend %d that is gone: %v, its activity: %s", pid, err, o.activity(pid))
	}
}

func (o *Observer) activity(pid int) string {
	var text string
	if err := o.db.QueryRow("select a::text from pg_stat_activity a where pid = $1", pid).Scan(&text); err != nil {
		return err.Error()
	}
	return text
}

func granted(locks []Lock) []Lock {
	var held []Lock
	for _, l := range locks {
		if l.Granted {
			held = append(held, l)
		}
	}
	return held
}

const here = "locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())"

func (o *Observer) locks(key lockkey.Key) ([]Lock, error) {
	var class, object, sub int64
	if id, ok := key.Int64(); ok {
		class, object, sub = int64(uint32(id>>32)), int64(uint32(id)), 1
	} else if hi, lo, ok := key.Pair(); ok {
		class, object, sub = int64(uint32(hi)), int64(uint32(lo)), 2
	} else {
		return nil, key.Err()
	}
	rows, err := o.db.Query("select pid, mode, granted from pg_locks where "+here+
		" and classid::int8 = $1 and objid::int8 = $2 and objsubid = $3 order by granted desc, pid", class, object, sub)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var locks []Lock
	for rows.Next() {
		var l Lock
		if err := rows.Scan(&l.PID, &l.Mode, &l.Granted); err != nil {
			return nil, err
		}
		locks = append(locks, l)
	}
	return locks, rows.Err()
}

// all names every advisory lock of the database, with the last statement of its owner.
func (o *Observer) all(ctx context.Context) ([]string, error) {
	return texts(ctx, o.db, `
		select format('%s %s on (%s, %s, %s) by backend %s, state %s, last statement %s',
			case when granted then 'granted' else 'waiting' end, mode, classid, objid, objsubid, pid, state, left(query, 200))
		from pg_locks left join pg_stat_activity using (pid) where `+here)
}
