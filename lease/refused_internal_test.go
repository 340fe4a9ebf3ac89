package lease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// refusingTrigger is DDL that makes the server refuse the changes of the row of the key "bad" that match a condition.
const refusingTrigger = `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF NEW.name = 'bad' AND %s THEN RAISE EXCEPTION 'refused by the table'; END IF;
	RETURN NEW;
END $$; `

const (
	beforeUpdate = "CREATE TRIGGER refuse BEFORE UPDATE ON gormlock_lease FOR EACH ROW EXECUTE FUNCTION refuse()"
	atCommit     = "CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON gormlock_lease DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()"
	noTrigger    = "DROP TRIGGER refuse ON gormlock_lease"
)

// managerOf returns a manager in a database that gets the tables.
func managerOf(t *testing.T, db *sql.DB) *Manager {
	t.Helper()
	if err := Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	m, err := New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

func execute(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

// sentTogether makes calls that share a statement, and returns their errors and how many calls each statement had.
func sentTogether(t *testing.T, b *batcher, n int, do func(i int) error) (errs []error, statements []int) {
	t.Helper()
	b.mu.Lock()
	send := b.send
	b.send = func(ctx context.Context, batch []*call) (holder.Instant, error) {
		statements = append(statements, len(batch))
		return send(ctx, batch)
	}
	b.slow = time.Hour
	var ends []func()
	for range maxRunning {
		ends = append(ends, b.begin())
	}
	b.mu.Unlock()
	errs = make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	for gathered := 0; gathered < n; {
		b.mu.Lock()
		gathered = len(b.gathered)
		b.mu.Unlock()
	}
	ends[0]()
	all.Wait()
	for _, end := range ends {
		end()
	}
	b.mu.Lock()
	b.send = send
	b.mu.Unlock()
	return errs, statements
}

// manyKeys returns keys, of which number bad has the given name.
func manyKeys(name string) (keys []lockkey.Key, bad int) {
	for i := range 4 * minGathered {
		keys = append(keys, lockkey.Of("good", i))
	}
	bad = 5
	keys[bad] = lockkey.Of(name)
	return keys, bad
}

// onlyThatFails fails the test unless exactly the call at fault has an error, and the error has this text.
func onlyThatFails(t *testing.T, errs []error, statements []int, bad int, says string) {
	t.Helper()
	for i, err := range errs {
		switch {
		case i != bad && err != nil:
			t.Errorf("call %d gets the error of another: %v", i, err)
		case i == bad && (err == nil || !strings.Contains(err.Error(), says)):
			t.Errorf("the call at fault: %v", err)
		}
	}
	if len(statements) < 2 || statements[0] != len(errs) || len(statements) > 1+len(errs) { // as many parts as a slow refusal is worth
		t.Errorf("%d calls are sent in statements of %v", len(errs), statements)
	}
}

// If the server refuses a row, one call is at fault: the other calls of its statement succeed.
func TestRefused_acquireAndRelease(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ refuse, refuseRelease, says string }{
		"a trigger": {
			refuse: fmt.Sprintf(refusingTrigger, "NEW.holder <> ''") + beforeUpdate, says: "refused by the table",
			refuseRelease: fmt.Sprintf(refusingTrigger, "NEW.holder = ''") + beforeUpdate,
		},
		"a trigger at the commit": {
			refuse: fmt.Sprintf(refusingTrigger, "NEW.holder <> ''") + atCommit, says: "refused by the table",
			refuseRelease: fmt.Sprintf(refusingTrigger, "NEW.holder = ''") + atCommit,
		},
		"a CHECK": {
			refuse: "ALTER TABLE gormlock_lease ADD CONSTRAINT few CHECK (name <> 'bad' OR holder = '')", says: "few",
			refuseRelease: "ALTER TABLE gormlock_lease ADD CONSTRAINT few CHECK (name <> 'bad' OR holder <> '') NOT VALID",
		},
		"a number that cannot grow": {refuse: "UPDATE gormlock_fence SET token = 9223372036854775807 WHERE name = 'bad'", says: "out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.SQLDB(t, pgtest.Schema())
			m := managerOf(t, db)
			keys, bad := manyKeys("bad")
			leases := make([]*Lease, len(keys))
			take := func(i int) (err error) {
				leases[i], err = m.TryAcquire(t.Context(), keys[i], time.Minute)
				return err
			}
			giveBack := func(i int) error { return leases[i].Release(t.Context()) }
			for i := range keys {
				if err := errors.Join(take(i), giveBack(i)); err != nil {
					t.Fatal(err)
				}
			}
			if c.refuseRelease != "" {
				for i := range keys {
					if err := take(i); err != nil {
						t.Fatal(err)
					}
				}
				execute(t, db, c.refuseRelease)
				errs, statements := sentTogether(t, m.releases, len(keys), giveBack)
				onlyThatFails(t, errs, statements, bad, c.says)
				execute(t, db, "ALTER TABLE gormlock_lease DROP CONSTRAINT IF EXISTS few; DROP FUNCTION IF EXISTS refuse CASCADE")
				l, err := m.Acquire(t.Context(), keys[bad], time.Minute, Timeout(20*time.Second)) // it is released later
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
			execute(t, db, c.refuse)
			errs, statements := sentTogether(t, m.acquires, len(keys), take)
			onlyThatFails(t, errs, statements, bad, c.says)
			for i := range keys {
				if i != bad && errs[i] == nil {
					if err := giveBack(i); err != nil {
						t.Errorf("the release of lease %d: %v", i, err)
					}
				}
			}
		})
	}
}

// A name that the encoding of the database lacks is refused before anything is executed.
func TestRefused_namesThatTheEncodingLacks(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	admin := pgtest.Conn(t, pgtest.Through(server.DSN("postgres")))
	if _, err := admin.Exec(t.Context(), "CREATE DATABASE in_latin1 TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"); err != nil {
		t.Fatal(err)
	}
	db := pgtest.SQLDB(t, pgtest.Through(server.DSN("in_latin1")), pgtest.Param("client_encoding", "UTF8"))
	m := managerOf(t, db)
	keys, bad := manyKeys("‘bad’")
	errs, statements := sentTogether(t, m.acquires, len(keys), func(i int) error {
		l, err := m.TryAcquire(t.Context(), keys[i], time.Minute)
		if err != nil {
			return err
		}
		return l.Release(t.Context())
	})
	onlyThatFails(t, errs, statements, bad, "no equivalent in encoding")
}

// Other leases go on while the server refuses to renew one of them. The error of that one says why.
func TestRefused_renewals(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	m := managerOf(t, db)
	keys, bad := manyKeys("bad")
	const ttl = 6 * time.Second
	var leases []*Lease
	for _, k := range keys {
		l, err := m.Acquire(t.Context(), k, ttl)
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
	}
	execute(t, db, fmt.Sprintf(refusingTrigger, "NEW.holder <> ''")+beforeUpdate)
	<-leases[bad].Lost()
	if err := leases[bad].Err(); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "refused by the table") {
		t.Errorf("the lease that the server refuses to renew: %v", err)
	}
	<-time.After(ttl)
	for i, l := range leases {
		if err := l.Err(); i != bad && err != nil {
			t.Errorf("lease %d ends with another: %v", i, err)
		}
	}
}

// The same holds if several are refused, each after a wait.
func TestRefused_renewalsThatWait(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	m := managerOf(t, db)
	const ttl, wait = 6 * time.Second, 400 * time.Millisecond
	isBad := func(i int) bool { return i%6 == 3 } // five of them
	var leases []*Lease
	for i := range 32 {
		name := "good"
		if isBad(i) {
			name = "bad"
		}
		l, err := m.Acquire(t.Context(), lockkey.Of(name, i), ttl)
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
	}
	sleeps := fmt.Sprintf("NEW.holder <> '' AND pg_sleep(%f) IS NOT NULL", wait.Seconds())
	execute(t, db, strings.Replace(fmt.Sprintf(refusingTrigger, sleeps), "NEW.name = 'bad'", "NEW.name LIKE 'bad%'", 1)+beforeUpdate)
	<-time.After(2 * ttl)
	for i, l := range leases {
		switch err := l.Err(); {
		case isBad(i) && !errors.Is(err, ErrLost):
			t.Errorf("lease %d was not refused: %v", i, err)
		case !isBad(i) && err != nil:
			t.Errorf("lease %d ends with others: %v", i, err)
		}
	}
}

// Close releases all leases except the one that the server refuses to release, and says how many are left.
func TestRefused_close(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	m, rival := managerOf(t, db), managerOf(t, db)
	keys, bad := manyKeys("bad")
	for _, k := range keys {
		if _, err := m.Acquire(t.Context(), k, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, db, fmt.Sprintf(refusingTrigger, "NEW.holder = ''")+beforeUpdate)
	if err := m.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "close: 1 leases were not released") || !strings.Contains(err.Error(), "refused by the table") {
		t.Errorf("Close: %v", err)
	}
	for i, k := range keys {
		if _, err := rival.TryAcquire(t.Context(), k, time.Minute); errors.Is(err, ErrNotAcquired) != (i == bad) {
			t.Errorf("lease %d after Close: %v", i, err)
		}
	}
	execute(t, db, noTrigger)
}

// Unconfirmed leases are released even if the server refuses to release one of them. That one is released once the server accepts it.
func TestRefused_unconfirmed(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	m, rival := managerOf(t, db), managerOf(t, db)
	keys, bad := manyKeys("bad")
	var items []item
	for _, k := range keys {
		l, err := m.Acquire(t.Context(), k, time.Minute, NoRenewal())
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, item{l.claim, 0})
	}
	execute(t, db, fmt.Sprintf(refusingTrigger, "NEW.holder = ''")+beforeUpdate)
	now := m.store.clock().Mono
	m.unconfirmed.mu.Lock() // so that all are looked for together
	for _, it := range items {
		m.unconfirmed.sought = append(m.unconfirmed.sought, &sought{item: it, next: now, pause: firstSearch, until: now + time.Minute})
	}
	m.unconfirmed.mu.Unlock()
	m.background.wakeBy(now)
	for i, k := range keys {
		if i == bad {
			continue
		}
		if _, err := rival.Acquire(t.Context(), k, time.Minute, Timeout(20*time.Second)); err != nil {
			t.Fatalf("lease %d: %v", i, err)
		}
	}
	if _, err := rival.TryAcquire(t.Context(), keys[bad], time.Minute); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("the refused one: %v", err)
	}
	execute(t, db, noTrigger)
	if _, err := rival.Acquire(t.Context(), keys[bad], time.Minute, Timeout(20*time.Second)); err != nil {
		t.Errorf("what is refused no more: %v", err)
	}
}

var errRefused = &pgconn.PgError{Code: "23514"}

// batcherWith returns a batcher whose statements send answers.
func batcherWith(t *testing.T, send func(batch []*call) error) *batcher {
	t.Helper()
	return &batcher{background: startBackground(t), slow: time.Hour, late: func(*call) {}, send: func(_ context.Context, batch []*call) (holder.Instant, error) {
		return holder.Now(), send(batch)
	}}
}

// Answers that a statement gave before it was refused do not count, because the statement is undone.
func TestRefused_answersBeforeTheRefusal(t *testing.T) {
	t.Parallel()
	b := batcherWith(t, func(batch []*call) error {
		for _, c := range batch {
			if len(batch) == minGathered {
				c.answered, c.answer.number = true, 7
			}
		}
		if len(batch) == minGathered {
			return errRefused
		}
		return nil
	})
	end := busy(t, b)
	answers := gather(t, b, 1, 2, 3, 4, 5, 6, 7, 8)
	end()
	for i, done := range answers() {
		if done {
			t.Errorf("call %d believes a statement that was undone", i)
		}
	}
}

// A call whose caller has left meanwhile is not sent again.
func TestRefused_whoLeftIsNotSentAgain(t *testing.T) {
	t.Parallel()
	began, goOn, late := make(chan struct{}), make(chan struct{}), make(chan bool, 1)
	b := batcherWith(t, func(batch []*call) error {
		if len(batch) == minGathered {
			close(began)
			<-goOn
			return errRefused
		}
		for _, c := range batch {
			if c.answered = true; c.token.ID == 8 {
				t.Error("it is sent again")
			}
		}
		return nil
	})
	b.late = func(c *call) { late <- c.answer.granted() || mayBeDone(c.sent, errors.New("no answer")) }
	end := busy(t, b)
	answers := gather(t, b, 1, 2, 3, 4, 5, 6, 7)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, _, err := b.do(ctx, callFor(8))
		left <- err
	}()
	for gathered := 0; gathered < minGathered; {
		b.mu.Lock()
		gathered = len(b.gathered)
		b.mu.Unlock()
	}
	end()
	<-began
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left: %v", err)
	}
	close(goOn)
	for i, done := range answers() {
		if !done {
			t.Errorf("call %d has no answer", i)
		}
	}
	if <-late {
		t.Error("what was not sent again is looked for")
	}
}

// If a trigger meets a deadlock, the whole batch is tried again. After other errors, such as a lost connection, nothing is sent again.
func TestRefused_conflictsAndOtherErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err       error
		sent      int
		fails     bool
		onlyFirst bool
	}{
		"a deadlock in a trigger":     {err: &pgconn.PgError{Code: "40P01", Where: "PL/pgSQL function f()"}, sent: 2, onlyFirst: true},
		"a connection that has ended": {err: errors.New("connection reset"), sent: 1, fails: true},
		"a server that stops":         {err: &pgconn.PgError{Code: "57P01", SeverityUnlocalized: "FATAL", Where: "PL/pgSQL function f()"}, sent: 1, fails: true},
		"a table that is not there":   {err: &pgconn.PgError{Code: "42P01"}, sent: 1, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := 0
			b := batcherWith(t, func(batch []*call) error {
				if sent++; len(batch) != minGathered {
					t.Errorf("%d are sent together", len(batch))
				}
				for _, c := range batch {
					c.answered = true
				}
				if sent > 1 && c.onlyFirst {
					return nil
				}
				return c.err
			})
			end := busy(t, b)
			var all sync.WaitGroup
			for id := range int64(minGathered) {
				all.Go(func() {
					if done, _, err := b.do(t.Context(), callFor(id+1)); !done || (err != nil) != c.fails {
						t.Errorf("call %d: answered %t, %v", id, done, err)
					}
				})
			}
			for gathered := 0; gathered < minGathered; {
				b.mu.Lock()
				gathered = len(b.gathered)
				b.mu.Unlock()
			}
			end()
			all.Wait()
			if sent != c.sent {
				t.Errorf("sent %d times", sent)
			}
		})
	}
}
