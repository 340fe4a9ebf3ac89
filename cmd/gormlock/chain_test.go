package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// party is a connection that takes part in a chain.
type party struct {
	*pgx.Conn
	t    *testing.T
	done chan struct{} // closed when the statement that waited has ended, with err
	err  error
}

// join connects under a name to a database of the test.
func join(t *testing.T, dsn, name string) *party {
	t.Helper()
	return &party{pgtest.Conn(t, pgtest.Through(dsn), pgtest.Param("application_name", name)), t, nil, nil}
}

func (p *party) pid() int { return int(p.PgConn().PID()) }

func (p *party) arg() string { return strconv.Itoa(p.pid()) }

func (p *party) exec(statements ...string) {
	p.t.Helper()
	for _, sql := range statements {
		if _, err := p.Exec(p.t.Context(), sql); err != nil {
			p.t.Fatalf("%s: %v", sql, err)
		}
	}
}

// wait runs a statement that blocks, and returns when it does. The end of the test waits
// for the statement.
func (p *party) wait(o *pgtest.Observer, sql string) {
	p.t.Helper()
	p.done = make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(p.done)
		_, p.err = p.Exec(ctx, sql)
	}()
	p.t.Cleanup(func() {
		cancel()
		<-p.done
	})
	o.WaitBackendBlocked(p.t, p.pid())
}

func take(t *testing.T, k lockkey.Key) string {
	t.Helper()
	id, ok := k.Int64()
	if !ok {
		t.Fatal(k)
	}
	return fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", id)
}

// staged is a chain of three in its own database: billing waits for the lock of worker, which waits for a row that psql has changed.
type staged struct {
	dsn                   string
	psql, worker, billing *party
}

func stage(t *testing.T) staged {
	t.Helper()
	dsn := pgtest.Database(t)
	o := pgtest.Observe(t, dsn)
	s := staged{dsn, join(t, dsn, "psql"), join(t, dsn, "worker"), join(t, dsn, "billing")}
	s.psql.exec("CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL)", "INSERT INTO accounts VALUES (1, 0)",
		"BEGIN", "UPDATE accounts SET balance = 1 WHERE id = 1")
	s.worker.exec("BEGIN", take(t, lockkey.Of("invoice", 42)))
	s.worker.wait(o, "UPDATE accounts SET balance = 2 WHERE id = 1")
	s.billing.wait(o, take(t, lockkey.Of("invoice", 42)))
	return s
}

// normal replaces what differs between two runs: process ids, ports and ages.
func (s staged) normal(text string) string {
	for name, p := range map[string]*party{"PSQL": s.psql, "WORKER": s.worker, "BILLING": s.billing} {
		text = regexp.MustCompile(`\b`+p.arg()+`\b`).ReplaceAllString(text, name)
	}
	text = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(text, "ADDRESS")
	text = regexp.MustCompile(`\bgormlock_[a-z]+_[a-z0-9]{8}\b`).ReplaceAllString(text, "DATABASE")
	text = regexp.MustCompile(`<?\b\d+(m\d*)?s\b`).ReplaceAllStringFunc(text, func(age string) string {
		return strings.Repeat("<", strings.Count(age, "<")) + "AGE"
	})
	return regexp.MustCompile(` {2,}`).ReplaceAllString(text, "  ")
}

func TestList_golden(t *testing.T) {
	t.Parallel()
	s := stage(t)
	r := on(t, s.dsn, "ls", "--key", "invoice/42")
	r.is(t, 0)
	const want = `KEY  MODE  STATE  FOR  PID  APPLICATION  USER  CLIENT  BLOCKED BY  DOING
invoice/42  exclusive  waits  AGE  BILLING  billing  postgres  ADDRESS  WORKER  SELECT pg_advisory_xact_lock(1840925882773462882)
invoice/42  exclusive  blocks  <AGE  WORKER  worker  postgres  ADDRESS  PSQL  UPDATE accounts SET balance = 2 WHERE id = 1

1 advisory lock held in database DATABASE, 2 requests wait: 2 shown
`
	if got := s.normal(r.out); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhy_golden(t *testing.T) {
	t.Parallel()
	s := stage(t)
	r := on(t, s.dsn, "why", s.billing.arg())
	r.is(t, 1)
	const want = `BILLING (billing, role postgres) runs a statement for AGE
  SELECT pg_advisory_xact_lock(1840925882773462882)
  waits AGE for the lock int64(1840925882773462882) (exclusive), which WORKER holds

WORKER (worker, role postgres) runs a statement for AGE
  UPDATE accounts SET balance = 2 WHERE id = 1
  waits AGE for row (0,1) of accounts (ShareLock), which PSQL holds

PSQL (psql, role postgres) is idle in a transaction for AGE
  last: UPDATE accounts SET balance = 1 WHERE id = 1
  waits for no lock: the others wait for it

What to do
  PSQL: its program has to commit or roll back: look what it waits for outside of the database
  PSQL: gormlock terminate PSQL rolls it back and frees its locks; there is no statement to cancel
  PSQL: idle_in_transaction_session_timeout does that by itself
`
	if got := s.normal(r.out); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhy_ofOneThatWaitsForNobody(t *testing.T) {
	t.Parallel()
	s := stage(t)
	on(t, s.dsn, "why", s.psql.arg()).is(t, 0, "waits for no lock", "2 requests wait for "+s.psql.arg()+", itself or through others", "gormlock terminate "+s.psql.arg())
	idle := join(t, s.dsn, "idle")
	r := on(t, s.dsn, "why", idle.arg())
	r.is(t, 0, "(idle, role postgres)", "waits for no lock")
	if strings.Contains(r.out, "What to do") {
		t.Errorf("nobody waits for it:\n%s", r.out)
	}
	on(t, s.dsn, "why", "999999999").is(t, 2, "there is no process 999999999")
	on(t, s.dsn, "why", "-5").is(t, 2, `"-5" is not a PID`)
}

func TestWhy_json(t *testing.T) {
	t.Parallel()
	s := stage(t)
	r := on(t, s.dsn, "why", s.billing.arg(), "--json")
	r.is(t, 1)
	var c struct {
		Waiting bool
		Chain   []struct {
			PID  int
			Root bool
			Wait *struct{ Key, Mode string }
			Cure []string
		}
	}
	if err := json.Unmarshal([]byte(r.out), &c); err != nil {
		t.Fatal(err, r.out)
	}
	if !c.Waiting || len(c.Chain) != 3 || c.Chain[0].PID != s.billing.pid() || c.Chain[2].PID != s.psql.pid() {
		t.Fatalf("%+v", c)
	}
	if c.Chain[0].Root || c.Chain[1].Root || !c.Chain[2].Root || c.Chain[0].Wait == nil || c.Chain[2].Wait != nil || len(c.Chain[2].Cure) == 0 {
		t.Errorf("%+v", c)
	}
}

// PostgreSQL ends a deadlock after deadlock_timeout. Before that it can be seen.
func TestWhy_namesACircle(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	o := pgtest.Observe(t, dsn)
	keys := []lockkey.Key{lockkey.Of("a"), lockkey.Of("b"), lockkey.Of("c")}
	var parties []*party
	for i, k := range keys {
		p := join(t, dsn, "party "+strconv.Itoa(i))
		p.exec("SET deadlock_timeout = '1h'", "BEGIN", take(t, k))
		parties = append(parties, p)
	}
	for i, p := range parties {
		p.wait(o, take(t, keys[(i+1)%3]))
	}
	r := on(t, dsn, "why", parties[0].arg())
	r.is(t, 1, "they wait for each other in a circle", "gormlock cancel "+parties[1].arg())
	on(t, dsn, "ls", "--waiting").is(t, 1, "3 requests wait")
	on(t, dsn, "cancel", parties[1].arg(), "--yes").is(t, 0, "the statement has ended")
	<-parties[1].done
	if err := parties[1].err; err == nil || !strings.Contains(err.Error(), "57014") {
		t.Errorf("the cancelled one got %v", err)
	}
	parties[1].exec("ROLLBACK")
	r = on(t, dsn, "why", parties[2].arg())
	if strings.Contains(r.out, "circle") {
		t.Errorf("the circle is broken:\n%s", r.out)
	}
}

// A prepared transaction has no process. Those that wait for it wait for its end.
func TestWhy_namesAPreparedTransaction(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Fresh(t, pgserver.Setting("max_prepared_transactions", "5")).DSN("postgres")
	p, waiter, other := join(t, dsn, "psql"), join(t, dsn, "waiter"), join(t, dsn, "other")
	p.exec("BEGIN", take(t, lockkey.Of("a")), "PREPARE TRANSACTION 'transfer 1'", "BEGIN", take(t, lockkey.Of("b")), "PREPARE TRANSACTION 'it''s 2'",
		"BEGIN", take(t, lockkey.Of("c")), `PREPARE TRANSACTION E'\x1b[2J\n3\u009b'`)
	other.wait(pgtest.Observe(t, dsn), take(t, lockkey.Of("a")))
	waiter.wait(pgtest.Observe(t, dsn), take(t, lockkey.Of("b")))
	on(t, dsn, "ls").is(t, 0, "prepared transfer 1", "prepared it's 2", "2 requests wait")
	r := on(t, dsn, "why", waiter.arg())
	r.is(t, 1, "prepared it's 2", "is a prepared transaction", "which a prepared transaction holds", "COMMIT PREPARED 'it''s 2' or ROLLBACK PREPARED 'it''s 2'")
	if strings.Contains(r.out, "transfer 1") {
		t.Errorf("it does not wait for the other:\n%s", r.out)
	}
	third := join(t, dsn, "third")
	third.wait(pgtest.Observe(t, dsn), take(t, lockkey.Of("c")))
	for _, args := range [][]string{{"ls"}, {"why", third.arg()}, {"ls", "--json"}, {"why", third.arg(), "--json"}} {
		if r := on(t, dsn, args...); strings.ContainsAny(r.out, "\x1b\u009b") {
			t.Errorf("%s moves the cursor: %q", args, r.out)
		}
	}
	on(t, dsn, "why", third.arg()).is(t, 1, `prepared \x1b[2J 3\u009b`, `ROLLBACK PREPARED E'\x1b[2J\x0a3\u009b'`)
}

func TestList_filters(t *testing.T) {
	t.Parallel()
	s := stage(t)
	held := join(t, s.dsn, "keeper 7")
	held.exec("SELECT pg_advisory_lock(7, 42)", "SELECT pg_advisory_lock_shared(9)")
	for _, c := range []struct {
		args []string
		code int
		want []int
	}{
		{nil, 0, []int{s.psql.pid(), s.worker.pid(), s.worker.pid(), s.billing.pid(), held.pid(), held.pid()}},
		{[]string{"--limit", "0"}, 0, []int{s.psql.pid(), s.worker.pid(), s.worker.pid(), s.billing.pid(), held.pid(), held.pid()}},
		{[]string{"--waiting"}, 1, []int{s.psql.pid(), s.worker.pid(), s.worker.pid(), s.billing.pid()}},
		{[]string{"--key", "pair(7,42)"}, 0, []int{held.pid()}},
		{[]string{"--key", "9"}, 0, []int{held.pid()}},
		{[]string{"--key", "int64(*"}, 0, []int{s.worker.pid(), s.billing.pid(), held.pid()}},
		{[]string{"--key", "invoice/42", "--waiting"}, 1, []int{s.worker.pid(), s.billing.pid()}},
		{[]string{"--key", "invoice/43"}, 0, nil},
		{[]string{"--pid", s.psql.arg()}, 0, []int{s.psql.pid()}},
		{[]string{"--app", "keeper*"}, 0, []int{held.pid(), held.pid()}},
		{[]string{"--app", "keeper"}, 0, nil},
		{[]string{"--user", "nobody"}, 0, nil},
		{[]string{"--user", "postgres", "--app", "psql"}, 0, []int{s.psql.pid()}},
		{[]string{"--kind", "transactionid"}, 0, []int{s.psql.pid(), s.worker.pid()}},
		{[]string{"--app", "nobody", "--waiting"}, 0, nil},
	} {
		r := on(t, s.dsn, append([]string{"ls", "--json"}, c.args...)...)
		r.is(t, c.code)
		var v struct {
			Locks    []struct{ PID int }
			Sessions []struct{ PID int }
		}
		if err := json.Unmarshal([]byte(r.out), &v); err != nil {
			t.Fatal(err, r.out)
		}
		var got []int
		for _, l := range v.Locks {
			got = append(got, l.PID)
			if !slices.ContainsFunc(v.Sessions, func(s struct{ PID int }) bool { return s.PID == l.PID }) {
				t.Errorf("%q: no session %d", c.args, l.PID)
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: got %v, want %v", c.args, got, c.want)
		}
	}
	on(t, s.dsn, "ls", "--limit", "1").is(t, 0, "5 more not shown: --limit 0 shows all")
	on(t, s.dsn, "ls", "--limit", "1", "--app", "keeper*").is(t, 0, "1 more not shown")
	on(t, s.dsn, "ls", "--limit", "-1").is(t, 2, "negative")
}
