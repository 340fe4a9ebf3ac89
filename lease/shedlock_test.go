package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// The statements of ShedLock itself (JdbcTemplateLockProvider with usingDbTime on
// PostgreSQL) stand in for the Java side. S1
const (
	javaInsert = `INSERT INTO shedlock(name, lock_until, locked_at, locked_by) VALUES($1, timezone('utc', CURRENT_TIMESTAMP) + make_interval(secs => $2), timezone('utc', CURRENT_TIMESTAMP), $3) ON CONFLICT (name) DO UPDATE SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + make_interval(secs => $2), locked_at = timezone('utc', CURRENT_TIMESTAMP), locked_by = $3 WHERE shedlock.name = $1 AND shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP)`
	javaUpdate = `UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + make_interval(secs => $2), locked_at = timezone('utc', CURRENT_TIMESTAMP), locked_by = $3 WHERE shedlock.name = $1 AND shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP)`
	javaExtend = `UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + make_interval(secs => $2) WHERE name = $1 AND locked_by = $3 AND lock_until > timezone('utc', CURRENT_TIMESTAMP)`
	javaUnlock = `UPDATE shedlock SET lock_until = CASE WHEN locked_at + make_interval(secs => $2) > timezone('utc', CURRENT_TIMESTAMP) THEN locked_at + make_interval(secs => $2) ELSE timezone('utc', CURRENT_TIMESTAMP) END WHERE name = $1 AND locked_by = $3`
)

// java is a Java process, which names itself after its host.
type java struct {
	t    testing.TB
	db   *sql.DB
	host string
}

// run reports whether a statement changed the row.
func (j java) run(statement, name string, d time.Duration) bool {
	j.t.Helper()
	result, err := j.db.ExecContext(j.t.Context(), statement, name, d.Seconds(), j.host)
	if err != nil {
		j.t.Error(err)
		return false
	}
	n, err := result.RowsAffected()
	if err != nil || n > 1 {
		j.t.Errorf("%d rows, %v", n, err)
	}
	return n == 1
}

// shedlock returns a pool whose sessions have another time zone, a Java process and a manager.
func shedlock(t testing.TB, opts ...lease.Option) (*sql.DB, java, *lease.Manager) {
	t.Helper()
	db := pgtest.SQLDB(t, pgtest.Schema(), pgtest.Param("timezone", "Asia/Kathmandu"))
	opts = append([]lease.Option{lease.ShedLock()}, opts...)
	if err := lease.Migrate(t.Context(), db, opts...); err != nil {
		t.Fatal(err)
	}
	elsewhere := pgtest.SQLDB(t, pgtest.Schema(), pgtest.Param("timezone", "America/Lima"))
	return db, java{t, elsewhere, "java-host"}, open(t, db, opts...)
}

func TestShedLock_excludesBothWays(t *testing.T) {
	t.Parallel()
	_, java, m := shedlock(t, lease.Owner("go-host"))
	k := lockkey.Of("nightlyReport")

	l := acquire(t, m, k, time.Minute)
	for _, statement := range []string{javaInsert, javaUpdate} {
		if java.run(statement, "nightlyReport", time.Minute) {
			t.Error("Java took what Go holds")
		}
	}
	for _, statement := range []string{javaExtend, javaUnlock} {
		if java.run(statement, "nightlyReport", 0) {
			t.Error("Java changed what Go holds")
		}
	}
	if err := l.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	release(t, l)

	if !java.run(javaUpdate, "nightlyReport", time.Minute) {
		t.Fatal("Java did not get what Go released")
	}
	_, err := m.TryAcquire(t.Context(), k, time.Minute)
	if !errors.Is(err, lease.ErrNotAcquired) || !strings.Contains(err.Error(), `"java-host"`) {
		t.Errorf("Go took what Java holds: %v", err)
	}
	if h, held, err := m.Holder(t.Context(), k); err != nil || !held || h.Owner != "java-host" || h.Remains > time.Minute {
		t.Errorf("%+v, %v, %v", h, held, err)
	}
	if !java.run(javaExtend, "nightlyReport", time.Hour) || !java.run(javaUnlock, "nightlyReport", 0) {
		t.Error("Java's own extend or unlock")
	}
	l = acquire(t, m, k, time.Minute)
	if h, _, err := m.Holder(t.Context(), k); err != nil || h.Owner != "go-host" {
		t.Errorf("%+v, %v", h, err)
	}
	release(t, l)
}

func TestShedLock_takesWhatRanOutBothWays(t *testing.T) {
	t.Parallel()
	db, java, m := shedlock(t)
	k := lockkey.Of("job")
	if !java.run(javaInsert, "job", 300*time.Millisecond) {
		t.Fatal("Java did not get it")
	}
	l := acquire(t, m, k, 300*time.Millisecond, lease.NoRenewal())
	if java.run(javaExtend, "job", time.Hour) || java.run(javaUnlock, "job", 0) {
		t.Error("a Java process that ran out changed what Go holds")
	}
	pgtest.Await(t, "Lost", l.Lost())
	for deadline := time.Now().Add(bound); !java.run(javaInsert, "job", time.Hour); {
		if time.Now().After(deadline) {
			t.Fatal("Java did not get what ran out")
		}
	}
	var before, after string
	const look = "SELECT s::text FROM shedlock s"
	if err := db.QueryRowContext(t.Context(), look).Scan(&before); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("Release: %v", err)
	}
	if err := l.Renew(t.Context()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("Renew: %v", err)
	}
	if err := db.QueryRowContext(t.Context(), look).Scan(&after); err != nil || before != after {
		t.Errorf("Java's row changed from %s to %s, %v", before, after, err)
	}
}

func TestShedLock_aWaiterIsNotStarved(t *testing.T) {
	t.Parallel()
	_, java, m := shedlock(t)
	if !java.run(javaInsert, "job", time.Hour) {
		t.Fatal("Java did not get it")
	}
	got := make(chan *lease.Lease)
	asked := make(chan struct{})
	go func() {
		l, err := m.Acquire(&signalling{Context: t.Context(), asked: asked}, lockkey.Of("job"), time.Minute)
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	pgtest.Await(t, "the waiter", asked)
	if !java.run(javaUnlock, "job", 0) {
		t.Error("Java's unlock")
	}
	release(t, <-got)
}

// S1: AtLeast holds for both sides.
func TestShedLock_atLeast(t *testing.T) {
	t.Parallel()
	_, java, m := shedlock(t)
	l := acquire(t, m, lockkey.Of("job"), time.Minute, lease.AtLeast(30*time.Second))
	release(t, l)
	if java.run(javaUpdate, "job", time.Minute) {
		t.Error("Java took it before Go's AtLeast")
	}
	if !java.run(javaInsert, "other", time.Minute) || !java.run(javaUnlock, "other", 30*time.Second) {
		t.Fatal("Java's own lock")
	}
	if _, err := m.TryAcquire(t.Context(), lockkey.Of("other"), time.Minute); !errors.Is(err, lease.ErrNotAcquired) {
		t.Errorf("Go took it before Java's lockAtLeastFor: %v", err)
	}
}

// Names are those that Java uses, and rows are never deleted.
func TestShedLock_rows(t *testing.T) {
	t.Parallel()
	db, java, m := shedlock(t)
	for name, k := range map[string]lockkey.Key{
		"plain":          lockkey.Of("plain"),
		"with a space/é": lockkey.Of("with a space/é"),
		"invoice/42":     lockkey.Of("invoice", 42),
		"named":          lockkey.Int64(7).Named("named"),
	} {
		l := acquire(t, m, k, time.Minute)
		if java.run(javaInsert, name, time.Minute) {
			t.Errorf("Java took %q from Go's %s", name, k)
		}
		release(t, l)
		if !java.run(javaUpdate, name, time.Minute) {
			t.Errorf("%q has no row that is free", name)
		}
	}
	var n int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM shedlock").Scan(&n); err != nil || n != 4 {
		t.Errorf("%d rows, %v", n, err)
	}
}

// L16: the table has no tokens, but leases have them, and one statement renews many leases.
func TestShedLock_tokensAndRenewals(t *testing.T) {
	t.Parallel()
	_, java, m := shedlock(t)
	k := lockkey.Of("job")
	const ttl = 3 * time.Second
	first := acquire(t, m, k, ttl)
	others := []*lease.Lease{first, acquire(t, m, lockkey.Of("b"), ttl), acquire(t, m, lockkey.Of("c"), ttl)}
	<-time.After(5 * time.Second)
	for _, l := range others {
		if l.Err() != nil || java.run(javaUpdate, l.Key().Topic(), time.Minute) {
			t.Errorf("%s was not renewed: %v", l.Key(), l.Err())
		}
		release(t, l)
	}
	second := acquire(t, m, k, ttl)
	if second.Token().Number != first.Token().Number+1 {
		t.Errorf("after %v came %v", first.Token(), second.Token())
	}
	release(t, second)
}

// Both sides compete: at most one holds the lock.
func TestShedLock_underContention(t *testing.T) {
	t.Parallel()
	_, j, m := shedlock(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var mu sync.Mutex
	holders, by := 0, map[string]int{}
	hold := func(who string) {
		mu.Lock()
		holders++
		by[who]++
		if holders != 1 {
			t.Errorf("%d holders", holders)
		}
		mu.Unlock()
		<-time.After(time.Millisecond)
		mu.Lock()
		holders--
		mu.Unlock()
	}
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				l, err := m.TryAcquire(context.WithoutCancel(ctx), lockkey.Of("job"), time.Minute)
				if err != nil {
					if !errors.Is(err, lease.ErrNotAcquired) {
						t.Error(err)
					}
					continue
				}
				hold("go")
				release(t, l)
			}
		})
		wg.Go(func() {
			me := java{t, j.db, "host-" + string(rune('a'+i))}
			for ctx.Err() == nil {
				if me.run(javaInsert, "job", time.Minute) {
					hold("java")
					me.run(javaUnlock, "job", 0)
				}
			}
		})
	}
	wg.Wait()
	if by["go"] == 0 || by["java"] == 0 {
		t.Errorf("they took turns %v", by)
	}
	t.Log(by)
}
