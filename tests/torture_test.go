package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// 32 goroutines in 2 processes add to one row by read-modify-write under the lock, which each takes by a door picked at
// random, while contexts end and backends are killed. GORMLOCK_TORTURE=1 does it for longer.
func TestTorture(t *testing.T) {
	t.Parallel()
	lasts, long := 2*time.Second, os.Getenv("GORMLOCK_TORTURE") != ""
	if long {
		lasts = 10 * time.Second
	}
	s := newTorture(t)
	stop := s.kill(t)
	results := s.run(t, job{For: lasts})
	killed := stop()
	s.assertNothingLeft(t)

	increments := s.increments(t)
	if n := s.counter(t); n != len(increments) {
		t.Errorf("the counter is at %d after %d committed increments", n, len(increments))
	}
	ends, by := map[ending]int{}, map[string]int{}
	for _, r := range results {
		for id, end := range r.Ended {
			ends[end]++
			if stored := increments[id]; stored != (end == committed) && end != unknown {
				t.Errorf("%s was %s, its increment is stored: %t", id, end, stored)
			}
		}
		for name, n := range r.Doors {
			by[name] += n
		}
		for _, wrong := range r.Wrong {
			t.Error(wrong)
		}
	}
	for _, d := range doors {
		if long && by[d.name] == 0 {
			t.Errorf("nothing was committed by the door %q", d.name)
		}
	}
	if killed == 0 || ends[refused] == 0 {
		t.Errorf("%d backends were killed, %d operations refused: nothing was disturbed", killed, ends[refused])
	}
	t.Logf("%d backends killed; %v; by door: %v", killed, ends, by)
}

// The control: the same without the lock loses updates, so the torture would see it.
func TestTorture_withoutTheLockUpdatesAreLost(t *testing.T) {
	t.Parallel()
	s := newTorture(t)
	results := s.run(t, job{For: time.Second / 2, Unlocked: true})
	s.assertNothingLeft(t)
	for _, r := range results {
		for _, wrong := range r.Wrong {
			t.Error(wrong)
		}
	}
	if n, done := s.counter(t), len(s.increments(t)); n >= done {
		t.Errorf("the counter is at %d after %d committed increments: nothing was lost", n, done)
	}
}

// torture is the database side: a counter, its audit, and sessions under a name of their own.
type torture struct {
	dsn  string
	name string
	key  int64
	conn *pgx.Conn
}

func newTorture(t *testing.T) *torture {
	t.Helper()
	key := pgtest.Key(t)
	id, _ := key.Int64()
	s := &torture{dsn: pgtest.SchemaDSN(t), name: fmt.Sprintf("torture %d", id), key: id, conn: pgtest.Conn(t, pgtest.Schema())}
	_, err := s.conn.Exec(t.Context(), `
		create table counters (id bigint primary key, n bigint not null);
		create table increments (id text primary key);
		insert into counters values (1, 0)`)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs the job in two processes of 16 goroutines, one of them with prepared statements, and returns their reports.
func (s *torture) run(t *testing.T, j job) []result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), j.For+2*time.Minute)
	defer cancel()
	j.DSN, j.Key, j.Goroutines = s.dsn, s.key, 16
	results := make([]result, 2)
	done := make(chan error, len(results))
	for i := range results {
		j.Name, j.PrepareStmt = fmt.Sprint(i), i > 0
		told, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		process := exec.CommandContext(ctx, os.Args[0])
		process.Env = append(os.Environ(), tortureJob+"="+string(told), "PGAPPNAME="+s.name)
		go func() {
			out, err := process.Output()
			var failed *exec.ExitError
			if errors.As(err, &failed) {
				err = fmt.Errorf("%w: %s", err, failed.Stderr)
			}
			if err == nil {
				err = json.Unmarshal(out, &results[i])
			}
			done <- err
		}()
	}
	for range results {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return results
}

// kill ends a backend every now and then, half of the time one that holds the lock. stop ends that, and says how many.
func (s *torture) kill(t *testing.T) (stop func() int) {
	t.Helper()
	const victim = `
		select pg_terminate_backend(pid) from (
			select pid from pg_stat_activity where application_name = $1
			order by $2 and pid in (select pid from pg_locks where locktype = 'advisory' and granted) desc, random()
			limit 1) as victim`
	conn := pgtest.Conn(t)
	ctx, cancel := context.WithCancel(t.Context())
	killed := make(chan int)
	go func() {
		n := 0
		defer func() { killed <- n }()
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for holder := false; ; holder = !holder {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			done, err := conn.Exec(context.WithoutCancel(ctx), victim, s.name, holder)
			if err != nil {
				t.Error(err)
				return
			}
			n += int(done.RowsAffected())
		}
	}()
	stop = sync.OnceValue(func() int {
		cancel()
		return <-killed
	})
	t.Cleanup(func() { stop() })
	return stop
}

// assertNothingLeft gives backends that have lost their client a moment to notice.
func (s *torture) assertNothingLeft(t *testing.T) {
	t.Helper()
	limit := time.Now().Add(10 * time.Second)
	for left := -1; left != 0; {
		err := s.conn.QueryRow(t.Context(), "select count(*) from pg_stat_activity where application_name = $1", s.name).Scan(&left)
		if err != nil {
			t.Fatal(err)
		}
		if left > 0 && time.Now().After(limit) {
			t.Fatalf("%d sessions are left", left)
		}
	}
}

func (s *torture) counter(t *testing.T) (n int) {
	t.Helper()
	if err := s.conn.QueryRow(t.Context(), "select n from counters").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *torture) increments(t *testing.T) map[string]bool {
	t.Helper()
	rows, err := s.conn.Query(t.Context(), "select id from increments")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]bool{}
	for _, id := range ids {
		stored[id] = true
	}
	return stored
}
