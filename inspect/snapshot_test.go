package inspect_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/lockkey/compat"
	"github.com/gormlock/gormlock/sessionlock"
)

func TestSnapshot_showsHolderAndWaiter(t *testing.T) {
	t.Parallel()
	for space, newKey := range map[string]func(testing.TB) lockkey.Key{
		"bigint": func(t testing.TB) lockkey.Key { return pgtest.Key(t) }, "pair": pgtest.PairKey,
	} {
		t.Run(space, func(t *testing.T) {
			t.Parallel()
			db := pgtest.SQLDB(t)
			key := newKey(t)
			holder, waiter := pgtest.Conn(t, pgtest.Param("application_name", "the holder")), pgtest.Conn(t)
			lock(t, holder, key)
			finish := begin(t, waiter, "SELECT pg_advisory_xact_lock_shared("+arguments(key)+")")

			v := snapshot(t, db, inspect.Known(key))
			held, _ := locksOf(v, holder)
			if len(held) != 1 {
				t.Fatalf("the holder has %d locks in %+v", len(held), v.Locks)
			}
			if l := held[0]; l.Name != key.Name() || l.Key != key.String() || l.Kind != inspect.Advisory || l.Scope != inspect.SessionScope ||
				l.Waiters != 1 || l.Mode != "exclusive" || l.Application != "the holder" || l.State != "idle" ||
				!strings.Contains(l.Query, "pg_advisory_lock") || l.Since.IsZero() || !l.Earliest || l.Client == "" || l.User == "" || l.Hidden {
				t.Errorf("held: %+v by %+v", l, l.Session)
			}
			if l := waitOf(t, v, waiter); !slices.Equal(l.Blockers, []int{pid(holder)}) || l.Mode != "shared" || l.Since.Before(v.Server.Started) ||
				l.Since.After(v.Taken) || l.Earliest || l.Key != key.String() || l.Thing != held[0].Thing || l.State != "active" || !l.InTransaction {
				t.Errorf("waiting: %+v by %+v", l, l.Session)
			}
			if v.Totals.Held < 1 || v.Totals.Waiting < 1 || v.Server.Room == 0 || v.Server.Locks < 2 || v.Server.Database == "" || v.Server.Version < 140000 {
				t.Errorf("%+v %+v", v.Totals, v.Server)
			}
			unlock(t, holder, key)
			finish()
		})
	}
}

// P7. pg_locks does not say whether a lock belongs to a session or a transaction. Without a transaction it can only be a session's.
func TestSnapshot_saysWhatIsKnownOfTheScope(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t)
	key, other, third := lockkey.Of(t.Name()), pgtest.Key(t), pgtest.Key(t)
	idle, open, prepared := pgtest.Conn(t), pgtest.Conn(t), pgtest.Conn(t)
	lock(t, idle, other)
	run(t, open, "BEGIN")
	lock(t, open, third)
	run(t, prepared, "BEGIN")
	run(t, prepared, "SELECT pg_advisory_xact_lock("+arguments(key)+")")
	run(t, prepared, "PREPARE TRANSACTION '"+key.Name()+"'")
	defer run(t, prepared, "ROLLBACK PREPARED '"+key.Name()+"'")

	v := snapshot(t, db)
	for name, c := range map[inspect.Scope]int{inspect.SessionScope: pid(idle), "": pid(open)} {
		i := slices.IndexFunc(v.Locks, func(l inspect.Lock) bool { return l.PID == c })
		if i < 0 || v.Locks[i].Scope != name {
			t.Errorf("want a lock of scope %q by %d in %+v", name, c, v.Locks)
			continue
		}
		// A lock that may be the session's can be older than the transaction.
		if l := v.Locks[i]; !l.Since.Equal(l.Started) || !l.Earliest {
			t.Errorf("since %s, the session since %s", l.Since, l.Started)
		}
	}
	id, _ := key.Int64()
	i := slices.IndexFunc(v.Locks, func(l inspect.Lock) bool { return l.ID == id && l.Kind == inspect.Advisory })
	if i < 0 || v.Locks[i].Scope != inspect.TransactionScope || v.Locks[i].Prepared != key.Name() || v.Locks[i].PID != 0 {
		t.Errorf("want a lock of a prepared transaction in %+v", v.Locks)
	}
}

// W10. Row locks and advisory locks are in one view, and a wait for a row names the row.
func TestSnapshot_showsRowWaits(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	holder, first, second := pgtest.Conn(t, pgtest.Schema()), pgtest.Conn(t, pgtest.Schema()), pgtest.Conn(t, pgtest.Schema())
	table := accounts(t, holder)
	run(t, holder, "BEGIN")
	run(t, holder, "UPDATE accounts SET balance = 1 WHERE id = 1")
	finishFirst := begin(t, first, "UPDATE accounts SET balance = 2 WHERE id = 1")
	finishSecond := begin(t, second, "UPDATE accounts SET balance = 3 WHERE id = 1")

	v := snapshot(t, db)
	if l := waitOf(t, v, first); l.Kind != inspect.Transaction || !strings.HasSuffix(table, l.Table) || l.Row != "(0,1)" || !strings.Contains(l.Key, "accounts") ||
		!slices.Equal(l.Blockers, []int{pid(holder)}) || l.Since.IsZero() || l.Scope != inspect.TransactionScope {
		t.Errorf("first: %+v by %+v", l, l.Session)
	}
	if l := waitOf(t, v, second); l.Kind != inspect.Tuple || l.Row != "(0,1)" || !strings.Contains(l.Key, "row (0,1) of accounts") ||
		!slices.Equal(l.Blockers, []int{pid(first)}) {
		t.Errorf("second: %+v by %+v", l, l.Session)
	}
	held, _ := locksOf(v, holder)
	if len(held) != 1 || held[0].Kind != inspect.Transaction || held[0].Waiters != 1 || held[0].State != "idle in transaction" ||
		!strings.Contains(held[0].Key, "accounts") || held[0].Since.IsZero() || !held[0].Since.Equal(held[0].Began) || !held[0].Earliest {
		t.Errorf("held: %+v", held)
	}
	run(t, holder, "COMMIT")
	finishFirst()
	finishSecond()
}

func TestSnapshot_showsTableWaits(t *testing.T) {
	t.Parallel()
	holder, waiter := pgtest.Conn(t, pgtest.Schema()), pgtest.Conn(t, pgtest.Schema())
	accounts(t, holder)
	run(t, holder, "BEGIN")
	run(t, holder, "SELECT FROM accounts")
	finish := begin(t, waiter, "ALTER TABLE accounts ADD COLUMN note text")
	v := snapshot(t, pgtest.SQLDB(t, pgtest.Schema()))
	if l := waitOf(t, v, waiter); l.Kind != inspect.Relation || l.Key != "table accounts" || l.Mode != "AccessExclusiveLock" || !slices.Equal(l.Blockers, []int{pid(holder)}) {
		t.Errorf("%+v by %+v", l, l.Session)
	}
	run(t, holder, "COMMIT")
	finish()
}

func TestSnapshot_namesKeys(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t) // the reserved keys are the same in each test
	db := pgtest.SQLDB(t, pgtest.Through(dsn))
	holder := pgtest.Conn(t, pgtest.Through(dsn))
	for _, migrate := range []error{inspect.Migrate(t.Context(), db), fence.Migrate(t.Context(), db)} {
		if migrate != nil {
			t.Fatal(migrate)
		}
	}
	named, fenced, known, plain := lockkey.Of("named", 1), lockkey.Of("fenced", 1), lockkey.Of("known", 1), lockkey.Of("plain", 1)
	id, _ := named.Int64()
	run(t, holder, "INSERT INTO gormlock_key_name VALUES (1, $1, 'named/1', 'transaction', now())", id)
	token, err := fence.Issue(t.Context(), db, fenced)
	if err != nil {
		t.Fatal(err)
	}
	var database string
	if err := db.QueryRowContext(t.Context(), "SELECT current_database()").Scan(&database); err != nil {
		t.Fatal(err)
	}
	keys := []lockkey.Key{named, fenced, known, plain, lockkey.Int64(72707369), compat.RailsMigrator(database), lockkey.Pair(7, -42)}
	for _, k := range keys {
		lock(t, holder, k)
	}
	v := snapshot(t, db, inspect.Known(known))
	got := map[string]string{}
	for _, l := range v.Locks {
		got[l.Key] = l.Source
		if (l.Key == "fenced/1") != (l.Token == token.Number) {
			t.Errorf("%s has token %d", l.Key, l.Token)
		}
	}
	for key, source := range map[string]string{
		"named/1": "names", "fenced/1": "fence", "known/1": "known", "Prisma migrate": "reserved",
		compat.RailsMigrator(database).String(): "scheme", "pair(7,-42)": "", lockkey.Int64(first(plain.Int64())).String(): "",
	} {
		if s, ok := got[key]; !ok || s != source {
			t.Errorf("%q is named by %q, want %q, in %q", key, s, source, got)
		}
	}
}

func first(id int64, _ bool) int64 { return id }

func TestSnapshot_showsManagersAndLeases(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	leased, err := leasesOf(t, db).Acquire(t.Context(), lockkey.Of("report", 7), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	m, err := sessionlock.Open(t.Context(), pgtest.DSN(t), sessionlock.Owner("billing-7"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context())
	key := pgtest.Key(t)
	held, err := m.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}

	v := snapshot(t, db)
	i := slices.IndexFunc(v.Locks, func(l inspect.Lock) bool { return l.PID == held.PID() && l.Kind == inspect.Advisory })
	if i < 0 || v.Locks[i].Owner != "billing-7" || v.Locks[i].Scope != inspect.SessionScope {
		t.Errorf("want a lock of billing-7 in %+v", v.Locks)
	}
	if len(v.Leases) != 1 || v.Totals.Leases != 1 {
		t.Fatalf("want one lease: %+v", v.Leases)
	}
	if l := v.Leases[0]; l.Key != "report/7" || l.Owner != "worker-3" || l.Token != leased.Token().Number || l.Expired || !l.Expires.After(v.Taken) || l.Acquired.After(v.Taken) {
		t.Errorf("%+v, want token %d", l, leased.Token().Number)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := leased.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if v := snapshot(t, db); len(v.Leases) != 0 {
		t.Errorf("released, and shown: %+v", v.Leases)
	}
}

// L18. A plain role sees who waits for whom and for how long, and is told what it cannot see.
func TestSnapshot_withoutPrivileges(t *testing.T) {
	t.Parallel()
	admin := pgtest.Conn(t, pgtest.Schema())
	role := strings.ToLower(strings.ReplaceAll(pgtest.Key(t).Name(), "/", "_"))
	run(t, admin, `CREATE ROLE "`+role+`" LOGIN`)
	defer run(t, admin, `DROP OWNED BY "`+role+`"; DROP ROLE "`+role+`"`)
	db := pgtest.SQLDB(t, pgtest.Schema(), pgtest.Param("role", role))
	superDB := pgtest.SQLDB(t, pgtest.Schema())
	var schema string
	if err := admin.QueryRow(t.Context(), "SELECT current_schema()").Scan(&schema); err != nil {
		t.Fatal(err)
	}
	run(t, admin, `GRANT USAGE ON SCHEMA "`+schema+`" TO "`+role+`"`)
	if err := fence.Migrate(t.Context(), superDB); err != nil {
		t.Fatal(err)
	}
	key := pgtest.Key(t)
	holder, waiter := pgtest.Conn(t, pgtest.Param("application_name", "the holder")), pgtest.Conn(t)
	lock(t, holder, key)
	finish := begin(t, waiter, "SELECT pg_advisory_xact_lock("+arguments(key)+")")

	v := snapshot(t, db)
	if v.Server.Role != role {
		t.Errorf("the role is %q", v.Server.Role)
	}
	l := waitOf(t, v, waiter)
	if !slices.Equal(l.Blockers, []int{pid(holder)}) || l.Since.IsZero() || !l.Hidden || l.Query != "" || l.State != "" || l.Client != "" {
		t.Errorf("waiting: %+v by %+v", l, l.Session)
	}
	held, _ := locksOf(v, holder)
	if len(held) != 1 || held[0].Application != "the holder" || !held[0].Hidden || !held[0].Since.IsZero() || held[0].Earliest || held[0].Scope != inspect.SessionScope {
		t.Errorf("held: %+v by %+v", held, held[0].Session)
	}
	said := strings.Join(v.Unseen, "\n")
	for _, want := range []string{"GRANT pg_read_all_stats TO", "GRANT SELECT ON gormlock_fence TO"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said in %q", want, said)
		}
	}
	if whole := snapshot(t, superDB); len(whole.Unseen) > 0 || !whole.Seen() {
		t.Errorf("a superuser does not see %q, cut %d", whole.Unseen, whole.Totals.Cut)
	}
	unlock(t, holder, key)
	finish()
}

func TestSnapshot_ofThisDatabaseOnly(t *testing.T) {
	t.Parallel()
	other := pgtest.Database(t)
	holder, waiter := pgtest.Conn(t, pgtest.Through(other)), pgtest.Conn(t, pgtest.Through(other))
	accounts(t, holder)
	key := lockkey.Of("of another database")
	lock(t, holder, key)
	run(t, holder, "BEGIN; UPDATE accounts SET balance = 1")
	finish := begin(t, waiter, "UPDATE accounts SET balance = 2")
	v := snapshot(t, pgtest.SQLDB(t))
	if v.Session(pid(holder)) != nil || v.Session(pid(waiter)) != nil {
		t.Errorf("sessions of another database are in %+v", v.Locks)
	}
	run(t, holder, "COMMIT")
	finish()
}

// L18. With 100,000 locks and 60 waits the view is bounded, says what it cut, and loses no wait.
func TestSnapshot_ofManyLocks(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t, pgserver.Setting("max_locks_per_transaction", "400"))
	dsn := server.DSN("postgres")
	db := pgtest.SQLDB(t, pgtest.Through(dsn))
	holder := pgtest.Conn(t, pgtest.Through(dsn))
	run(t, holder, "SELECT count(pg_advisory_lock(n)) FROM generate_series(1, 100000) n")
	observer := pgtest.Observe(t, dsn)
	var waiters sync.WaitGroup
	for range 60 {
		c := pgtest.Conn(t, pgtest.Through(dsn))
		waiters.Go(func() {
			if _, err := c.Exec(context.WithoutCancel(t.Context()), "SELECT pg_advisory_xact_lock(77777)"); err != nil {
				t.Error(err)
			}
		})
	}
	observer.WaitBlocked(t, lockkey.Int64(77777), 60)

	began := time.Now()
	v := snapshot(t, db)
	took := time.Since(began)
	t.Logf("100,000 locks and 60 that wait: %s", took)
	waits := 0
	for _, l := range v.Locks {
		if !l.Granted {
			waits++
		}
	}
	if len(v.Locks) != 1000 || waits != 60 || v.Totals.Held != 100_000 || v.Totals.Waiting != 60 || v.Totals.Cut != 99_060 || v.Server.Locks < 100_060 {
		t.Errorf("%d entries, %d waits, %+v, %+v", len(v.Locks), waits, v.Totals, v.Server)
	}
	if l := v.Locks[60]; !l.Granted || l.ID != 77777 || l.Waiters != 60 {
		t.Errorf("what is waited for does not come next, but %+v", l)
	}
	if took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if few := snapshot(t, db, inspect.Limit(10)); len(few.Locks) != 10 || few.Totals.Cut != 100_050 || few.Totals.Waiting != 60 {
		t.Errorf("%d entries, %+v", len(few.Locks), few.Totals)
	}
	tree := inspect.Tree(v)
	if len(tree) != 1 || len(tree[0].Waiters) != 60 {
		t.Errorf("the tree has %d roots, the first %d waiters", len(tree), len(tree[0].Waiters))
	}
	run(t, holder, "SELECT pg_advisory_unlock_all()")
	waiters.Wait()
}

// As through a pooler without prepared statements.
func TestSnapshot_bySimpleProtocol(t *testing.T) {
	t.Parallel()
	key := pgtest.Key(t)
	holder, waiter := pgtest.Conn(t), pgtest.Conn(t)
	db := pgtest.SQLDB(t, pgtest.Schema(), pgtest.SimpleProtocol(), pgtest.MaxConns(1))
	if err := inspect.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	lock(t, holder, key)
	finish := begin(t, waiter, "SELECT pg_advisory_xact_lock("+arguments(key)+")")
	v := snapshot(t, db, inspect.Known(key))
	if l := waitOf(t, v, waiter); l.Key != key.String() || !slices.Equal(l.Blockers, []int{pid(holder)}) || len(v.Unseen) > 0 {
		t.Errorf("%+v, unseen %q", l, v.Unseen)
	}
	unlock(t, holder, key)
	finish()
}

// A pool whose connections all wait is distinguished from a server that is down.
func TestSnapshot_withoutAConnectionLeft(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.MaxConns(1))
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = inspect.Snapshot(ctx, db)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "all 1 connections of the pool are in use") {
		t.Error(err)
	}
}

func TestSnapshot_ofAStandby(t *testing.T) {
	t.Parallel()
	standby := pgtest.Standby(t, pgtest.Fresh(t))
	v := snapshot(t, pgtest.SQLDB(t, pgtest.Through(standby.DSN("postgres"))))
	if !v.Server.Standby || len(v.Unseen) > 0 {
		t.Errorf("%+v, unseen %q", v.Server, v.Unseen)
	}
}

func TestSnapshot_refusesBadOptions(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t)
	for name, o := range map[string]inspect.Option{
		"Limit": inspect.Limit(0), "Timeout": inspect.Timeout(0), "Known": inspect.Known(lockkey.Key{}),
	} {
		if _, err := inspect.Snapshot(t.Context(), db, o); err == nil || !strings.HasPrefix(err.Error(), "gormlock: inspect: "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := inspect.Snapshot(t.Context(), db, inspect.Known(lockkey.Key{})); !errors.Is(err, lockkey.ErrInvalid) {
		t.Error(err)
	}
}

func TestSnapshot_isJSONForMachines(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t)
	key := pgtest.Key(t)
	holder := pgtest.Conn(t)
	lock(t, holder, key)
	text, err := json.Marshal(snapshot(t, db, inspect.Known(key)))
	if err != nil {
		t.Fatal(err)
	}
	var decoded struct {
		Locks []struct {
			Key, ID, Mode, State string
			PID                  int
			Granted              bool
		}
		Unseen, Leases []any
	}
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	for _, l := range decoded.Locks {
		if l.PID == pid(holder) && l.Key == key.String() && l.ID == arguments(key) && l.Granted && l.Mode == "exclusive" && l.State == "idle" {
			if decoded.Unseen == nil || decoded.Leases == nil {
				t.Errorf("empty lists are null in %s", text)
			}
			return
		}
	}
	t.Errorf("the lock is not in %s", text)
}
