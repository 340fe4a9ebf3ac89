package wiretap_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestPreparedStatements(t *testing.T) {
	t.Parallel()
	p, c := tapped(t)
	expect(t, p, 0)
	const sql = "select $1::int"
	for i, trips := range []int{2, 1, 1} {
		var n int
		if err := c.QueryRow(bg, sql, 7).Scan(&n); err != nil || n != 7 {
			t.Fatal(n, err)
		}
		prepared := p.Prepared()
		if want := []string{sql}[:max(0, 1-i)]; !slices.Equal(prepared, want) {
			t.Errorf("prepared %q, want %q", prepared, want)
		}
		expect(t, p, trips, sql)
	}
	if _, err := c.Prepare(bg, "named", "select $1::text"); err != nil {
		t.Fatal(err)
	}
	expect(t, p, 1)
	if _, err := c.Exec(bg, "named", "x"); err != nil {
		t.Fatal(err)
	}
	expect(t, p, 1, "select $1::text")
}

func TestModes(t *testing.T) {
	t.Parallel()
	p, c := tapped(t)
	for mode, trips := range map[pgx.QueryExecMode][]int{
		pgx.QueryExecModeCacheStatement: {2, 1},
		pgx.QueryExecModeCacheDescribe:  {2, 1},
		pgx.QueryExecModeDescribeExec:   {2, 2},
		pgx.QueryExecModeExec:           {1, 1},
		pgx.QueryExecModeSimpleProtocol: {1, 1},
	} {
		sql := "select $1::int -- " + mode.String()
		for _, want := range trips {
			if _, err := c.Exec(bg, sql, mode, 1); err != nil {
				t.Fatal(err)
			}
			sent := sql
			if mode == pgx.QueryExecModeSimpleProtocol {
				sent = p.Statements()[0] // with the value in it
			}
			expect(t, p, want, sent)
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	p, c := tapped(t)
	for _, sql := range []string{
		"begin", "select 1", "commit", "begin; select 1; select 2; commit", "", "-- ping",
		"select '" + strings.Repeat("x", 300_000) + "'",
		"select repeat('x', 1000) from generate_series(1, 2000)",
		"do $$ begin raise notice 'a'; raise warning 'b'; end $$",
		"listen c", "notify c, 'x'", "set work_mem = '5MB'",
	} {
		execute(t, c, sql)
		expect(t, p, 1, sql)
	}
	for range 2 {
		if _, err := c.Exec(bg, "select 1/0; select 1"); err == nil {
			t.Error("no error")
		}
		expect(t, p, 1, "select 1/0; select 1")
	}
	if _, err := c.Exec(bg, "select no_such from nowhere where a = $1", 1); err == nil {
		t.Error("no error")
	}
	expect(t, p, 1) // it was not executed
	if _, err := c.Exec(bg, "select 1/$1::int", 0); err == nil {
		t.Error("no error")
	}
	expect(t, p, 2, "select 1/$1::int")
	tx, err := c.Begin(bg)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(bg); err != nil {
		t.Fatal(err)
	}
	// pgx first closes the prepared statement that has failed.
	expect(t, p, 3, "begin", "rollback")
}

func TestBatch(t *testing.T) {
	t.Parallel()
	p, c := tapped(t)
	for _, trips := range []int{2, 1} {
		var b pgx.Batch
		var want []string
		for i := range 20 {
			sql := fmt.Sprintf("select $1::int + %d", i)
			b.Queue(sql, i)
			want = append(want, sql)
		}
		if err := c.SendBatch(bg, &b).Close(); err != nil {
			t.Fatal(err)
		}
		expect(t, p, trips, want...)
	}
}

// The answers to the first of these come while the rest is still on its way.
func TestLongTransmission(t *testing.T) {
	t.Parallel()
	p, w := rawWire(t)
	const syncs = 500
	go func() {
		for range syncs {
			w.Send(&pgproto3.Parse{Query: "select '" + strings.Repeat("y", 4000) + "'"})
			w.Send(&pgproto3.Bind{})
			w.Send(&pgproto3.Execute{})
			w.Send(&pgproto3.Sync{})
		}
		if err := w.Flush(); err != nil {
			t.Error(err)
		}
	}()
	await[*pgproto3.ReadyForQuery](w, syncs)
	if got := p.RoundTrips(); got != 1 {
		t.Errorf("%d round trips, want 1", got)
	}
	if got := len(p.Statements()); got != syncs {
		t.Errorf("%d statements, want %d", got, syncs)
	}
}

func TestFlush(t *testing.T) {
	t.Parallel()
	p, w := rawWire(t)
	const sql = "select generate_series(1, 4)"
	w.send(&pgproto3.Parse{Query: sql}, &pgproto3.Describe{ObjectType: 'S'}, &pgproto3.Flush{})
	await[*pgproto3.RowDescription](w, 1)
	expect(t, p, 1)
	w.send(&pgproto3.Bind{}, &pgproto3.Execute{MaxRows: 3}, &pgproto3.Flush{})
	await[*pgproto3.PortalSuspended](w, 1)
	w.send(&pgproto3.Execute{}, &pgproto3.Sync{})
	await[*pgproto3.ReadyForQuery](w, 1)
	expect(t, p, 2, sql, sql)
	w.send(&pgproto3.Parse{Query: "no sql"}, &pgproto3.Flush{})
	await[*pgproto3.ErrorResponse](w, 1)
	w.send(&pgproto3.Sync{})
	await[*pgproto3.ReadyForQuery](w, 1)
	w.send(&pgproto3.Query{String: "select 1"})
	await[*pgproto3.ReadyForQuery](w, 1)
	expect(t, p, 2, "select 1")
}

func TestPortalsAndNames(t *testing.T) {
	t.Parallel()
	p, w := rawWire(t)
	w.send(
		&pgproto3.Parse{Name: "a", Query: "select 'a'"}, &pgproto3.Parse{Name: "b", Query: "select 'b'"},
		&pgproto3.Bind{DestinationPortal: "pa", PreparedStatement: "a"}, &pgproto3.Bind{DestinationPortal: "pb", PreparedStatement: "b"},
		&pgproto3.Execute{Portal: "pb"}, &pgproto3.Execute{Portal: "pa"},
		&pgproto3.Close{ObjectType: 'P', Name: "pa"}, &pgproto3.Close{ObjectType: 'S', Name: "b"}, &pgproto3.Sync{})
	await[*pgproto3.ReadyForQuery](w, 1)
	expect(t, p, 1, "select 'b'", "select 'a'")
	w.send(&pgproto3.Parse{Name: "b", Query: "select 'c'"}, &pgproto3.Bind{PreparedStatement: "b"}, &pgproto3.Execute{}, &pgproto3.Sync{})
	await[*pgproto3.ReadyForQuery](w, 1)
	expect(t, p, 1, "select 'c'")
}

func TestCopy(t *testing.T) {
	t.Parallel()
	p, c := tapped(t)
	execute(t, c, "create table t (n int)")
	p.Reset()
	data := strings.Repeat("1\n", 200_000)
	if tag, err := c.PgConn().CopyFrom(bg, strings.NewReader(data), "copy t from stdin"); err != nil || tag.RowsAffected() != 200_000 {
		t.Fatal(tag, err)
	}
	expect(t, p, 1, "copy t from stdin")
	if _, err := c.PgConn().CopyFrom(bg, strings.NewReader(strings.Repeat("x\n", 200_000)), "copy t from stdin"); err == nil {
		t.Fatal("no error")
	}
	expect(t, p, 1, "copy t from stdin")
	var out strings.Builder
	if _, err := c.PgConn().CopyTo(bg, &out, "copy t to stdout"); err != nil || out.String() != data {
		t.Fatal(out.Len(), err)
	}
	expect(t, p, 1, "copy t to stdout")
	execute(t, c, "select 1")
	expect(t, p, 1, "select 1")
}

// Clients send a Sync behind Execute, which the server ignores when it is a COPY.
func TestExtendedCopy(t *testing.T) {
	t.Parallel()
	p, w := rawWire(t)
	w.send(&pgproto3.Query{String: "create table t (n int)"})
	await[*pgproto3.ReadyForQuery](w, 1)
	p.Reset()
	for i, data := range []string{"1\n2\n", "x\n", "3\n"} {
		w.send(&pgproto3.Parse{Query: "copy t from stdin"}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{})
		await[*pgproto3.CopyInResponse](w, 1)
		w.send(&pgproto3.CopyData{Data: []byte(data)}, &pgproto3.CopyDone{}, &pgproto3.Sync{})
		await[*pgproto3.ReadyForQuery](w, 1)
		w.send(&pgproto3.Query{String: "select 1"})
		await[*pgproto3.ReadyForQuery](w, 1)
		if got := p.RoundTrips(); got != 2*(i+1) {
			t.Errorf("%d round trips after %q, want %d", got, data, 2*(i+1))
		}
	}
}

// Opening, closing and cancelling are not counted, whatever they take.
func TestOnlyRequestsCount(t *testing.T) {
	t.Parallel()
	p, dsn := pgtest.Tap(t, pgtest.DSN(t))
	asking := strings.Replace(dsn, "sslmode=disable", "sslmode=prefer", 1)
	c := pgtest.Conn(t, pgtest.Through(asking), pgtest.Param("application_name", "asking"))
	expect(t, p, 0)
	execute(t, c, "select 1")
	expect(t, p, 1, "select 1")
	done := make(chan error)
	go func() {
		_, err := c.Exec(bg, "select pg_sleep(600)")
		done <- err
	}()
	observer := pgtest.Conn(t)
	pgtest.Eventually(t, "statement at work", func() bool { return active(t, observer, c.PgConn().PID()) })
	if err := c.PgConn().CancelRequest(bg); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "57014") {
		t.Errorf("the request to cancel did not arrive: %v", err)
	}
	if p.Opened() != 0 {
		t.Errorf("%d sessions opened since Reset", p.Opened())
	}
	expect(t, p, 1, "select pg_sleep(600)")
	if err := c.Close(bg); err != nil {
		t.Fatal(err)
	}
	expect(t, p, 0)
}

func TestPasswordsAreNotCounted(t *testing.T) {
	t.Parallel()
	hba := filepath.Join(hbaDir(t), "hba.conf")
	rules := "host all postgres 127.0.0.1/32 trust\nhost postgres guest 127.0.0.1/32 scram-sha-256\n"
	if err := os.WriteFile(hba, []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	s := pgtest.Fresh(t, pgserver.Setting("hba_file", hba))
	admin := pgtest.Conn(t, pgtest.Through(s.DSN("postgres")))
	execute(t, admin, "set password_encryption = 'scram-sha-256'", "create role guest login password 'secret'")
	p, dsn := pgtest.Tap(t, strings.Replace(s.DSN("postgres"), "postgres@", "guest:secret@", 1))
	c := pgtest.Conn(t, pgtest.Through(dsn))
	expect(t, p, 0)
	execute(t, c, "select 1")
	expect(t, p, 1, "select 1")
}

func hbaDir(t testing.TB) string {
	dir, err := os.MkdirTemp("", "wiretap-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestManyConnections(t *testing.T) {
	t.Parallel()
	const clients, queries = 32, 50
	p, dsn := pgtest.Tap(t, pgtest.DSN(t))
	var all sync.WaitGroup
	for i := range clients {
		c := pgtest.Conn(t, pgtest.Through(dsn))
		all.Go(func() {
			for n := range queries {
				var got int
				if err := c.QueryRow(bg, "select $1::int", n).Scan(&got); err != nil || got != n {
					t.Errorf("client %d: %d, %v", i, got, err)
					return
				}
			}
		})
	}
	all.Wait()
	if got, want := p.RoundTrips(), clients*(queries+1); got != want {
		t.Errorf("%d round trips, want %d", got, want)
	}
	if p.Opened() != clients || p.Connections() != clients || len(p.Statements()) != clients*queries {
		t.Errorf("%d opened, %d open, %d statements", p.Opened(), p.Connections(), len(p.Statements()))
	}
}
