package work_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

func of(account int64, text string) *Mail { return &Mail{AccountID: &account, Text: text} }

func TestOnePer_worksInOrderAlsoThroughRetries(t *testing.T) {
	t.Parallel()
	db := open(t, work.OnePer("account_id"))
	var mails []*Mail
	for i := range 200 {
		m := of(int64(i%7), fmt.Sprint(i))
		m.Priority, m.Queue = i%3, []string{"a", "b"}[i%2]
		mails = append(mails, m)
	}
	must(t, work.Enqueue(db, mails...))
	var mu sync.Mutex
	running, last := map[int64]bool{}, map[int64]int64{}
	w := worker(t, db, func(_ context.Context, m *Mail) error {
		mu.Lock()
		defer mu.Unlock()
		a := *m.AccountID
		if running[a] || m.ID < last[a] {
			t.Errorf("job %d of account %d after %d, another running: %t", m.ID, a, last[a], running[a])
		}
		running[a], last[a] = true, m.ID
		mu.Unlock()
		time.Sleep(time.Millisecond) //nolint:forbidigo // so that two jobs would overlap
		mu.Lock()
		running[a] = false
		if m.ID%5 == 0 && m.Attempts == 1 {
			return errors.New("once")
		}
		return nil
	}, work.OnePer("account_id"), work.Workers(8), work.Backoff(func(int) time.Duration { return 0 }))
	drain(t, w)
	if s := states(t, db); s["done"] != 200 {
		t.Errorf("states %v", s)
	}
}

func TestOnePer_waitsForLaterAndRunningNotForDead(t *testing.T) {
	t.Parallel()
	db := open(t, work.OnePer("account_id"))
	null := &Mail{Text: "null"}
	must(t, work.Enqueue(db, of(1, "later"), of(1, "1 waits"), of(2, "dead"), of(2, "2 goes"), null, &Mail{Text: "null too"}, of(3, "runs elsewhere"), of(3, "3 waits")))
	must(t, db.Exec("UPDATE mails SET state = 'running', claimed_by = 'x', claimed_until = now() + interval '1 hour' WHERE text = 'runs elsewhere'").Error)
	var seen texts
	w := worker(t, db, func(_ context.Context, m *Mail) error {
		seen.add(m.Text)
		switch m.Text {
		case "later":
			return work.Later(time.Hour, nil)
		case "dead":
			return work.Dead(nil)
		}
		return nil
	}, work.OnePer("account_id"), work.Workers(1))
	drain(t, w)
	seen.mustBe(t, "later", "dead", "null", "null too", "2 goes")
}

// An older job that is committed late waits for the one that runs. If both were claimed at once, the server would refuse one.
func TestOnePer_anOlderJobThatCommitsLateWaits(t *testing.T) {
	t.Parallel()
	db := open(t, work.OnePer("account_id"))
	tx := db.Begin()
	must(t, work.Enqueue(tx, of(1, "older")))
	must(t, work.Enqueue(db, of(1, "younger")))
	begun, goOn := make(chan struct{}), make(chan struct{})
	var seen texts
	w := worker(t, db, func(_ context.Context, m *Mail) error {
		if m.Text == "younger" {
			close(begun)
			<-goOn
		}
		seen.add(m.Text)
		return nil
	}, work.OnePer("account_id"), work.Poll(10*time.Millisecond))
	start(t, w)
	pgtest.Await(t, "the younger", begun)
	must(t, tx.Commit().Error)
	time.Sleep(100 * time.Millisecond) //nolint:forbidigo // for a worker that would wrongly begin it
	seen.mustBe(t)
	err := db.Exec("UPDATE mails SET state = 'running' WHERE text = 'older'").Error
	if err == nil || !strings.Contains(err.Error(), "23505") {
		t.Errorf("two run at once: %v", err)
	}
	close(goOn)
	eventually(t, "both", func() bool { return states(t, db)["done"] == 2 })
	seen.mustBe(t, "younger", "older")
}

// An older job does not wait for longer either if others of its value follow each other without a pause.
func TestOnePer_anOlderJobThatCommitsLateComesBeforeThoseThatFollow(t *testing.T) {
	t.Parallel()
	db := open(t, work.OnePer("account_id"))
	tx := db.Begin()
	must(t, work.Enqueue(tx, of(1, "older")))
	must(t, db.Exec("INSERT INTO mails (account_id, text) SELECT 1 + g % 2, 'x' FROM generate_series(1, 40000) g").Error)
	var n, busy atomic.Int32
	begun := make(chan struct{})
	start(t, worker(t, db, func(_ context.Context, m *Mail) error {
		if *m.AccountID == 1 {
			if busy.Add(1) != 1 {
				t.Error("two run at once")
			}
			defer busy.Add(-1)
			<-time.After(time.Second) // one of them runs nearly always
		}
		if n.Add(1); m.Text == "older" {
			close(begun)
		}
		return nil
	}, work.OnePer("account_id")))
	eventually(t, "the first", func() bool { return n.Load() > 20 })
	must(t, tx.Commit().Error)
	began := time.Now()
	pgtest.Await(t, "the older", begun)
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it began after %s", took)
	}
	if s := states(t, db); s["ready"] == 0 {
		t.Error("it was the last")
	}
}

func TestFairBy_aBacklogMakesNobodyWait(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]work.Option{
		"alone": {work.FairBy("account_id")}, "beside OnePer": {work.FairBy("account_id"), work.OnePer("text")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, opts...)
			must(t, db.Exec("INSERT INTO mails (account_id, priority, text) SELECT 1, 9, 'a' || g FROM generate_series(1, 5000) g").Error)
			must(t, work.Enqueue(db, of(2, "b1"), of(2, "b2"), of(3, "c"), &Mail{Text: "null"}))
			var seen texts
			ctx, stop := context.WithCancel(t.Context())
			w := worker(t, db, func(_ context.Context, m *Mail) error {
				seen.add(m.Text)
				if len(seen.all) == 7 {
					stop()
				}
				return nil
			}, append(opts, work.Workers(1))...)
			if _, err := w.Drain(ctx); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			seen.all = seen.all[:7]
			seen.mustBe(t, "a1", "b1", "c", "null", "a2", "b2", "a3")
		})
	}
}

func TestFairBy_aNewcomerStartsSoon(t *testing.T) {
	t.Parallel()
	db := open(t, work.FairBy("account_id"))
	must(t, db.Exec("INSERT INTO mails (account_id, text) SELECT 1, 'a' FROM generate_series(1, 20000)").Error)
	var seen texts
	w := worker(t, db, func(_ context.Context, m *Mail) error {
		time.Sleep(time.Millisecond) //nolint:forbidigo // the work
		seen.add(m.Text)
		return nil
	}, work.FairBy("account_id"), work.Workers(4))
	start(t, w)
	eventually(t, "the backlog is worked on", func() bool { seen.mu.Lock(); defer seen.mu.Unlock(); return len(seen.all) > 100 })
	must(t, db.Transaction(func(tx *gorm.DB) error { return work.Enqueue(tx, of(2, "b")) }))
	begun := func(text string) int {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		return slices.Index(seen.all, text)
	}
	seen.mu.Lock()
	before := len(seen.all)
	seen.mu.Unlock()
	eventually(t, "the newcomer", func() bool { return begun("b") >= 0 })
	if n := begun("b") - before; n > 5000 {
		t.Errorf("%d jobs of the other began before it", n)
	}
}

// pinned begins a transaction that keeps vacuum from removing anything.
func pinned(t testing.TB) {
	t.Helper()
	conn := pgtest.Conn(t)
	for _, text := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT txid_current()"} {
		_, err := conn.Exec(t.Context(), text)
		must(t, err)
	}
}

// some works on this many jobs.
func some(t testing.TB, db *gorm.DB, n int32, opts ...work.Option) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), bound)
	defer stop()
	var handled atomic.Int32
	w := worker(t, db, func(context.Context, *Mail) error {
		if handled.Add(1) == n {
			stop()
		}
		return nil
	}, append(opts, work.Workers(16))...)
	if _, err := w.Drain(ctx); handled.Load() < n {
		t.Fatalf("%d of %d jobs: %v", handled.Load(), n, err)
	}
}

// P31 with OnePer: since vacuum could last remove anything, 500 jobs of each of 20 values were done, and each left three index entries. Reading all
// of them for each list and each claim would cost 3,155 pages per job. The unique index remains: it compares new entries with all old ones.
func TestOnePer_doesNotWalkOverWhatIsDone(t *testing.T) {
	t.Parallel()
	db := open(t, work.OnePer("account_id"))
	must(t, db.Exec("ALTER TABLE mails SET (autovacuum_enabled = off)").Error)
	must(t, db.Exec("INSERT INTO mails (account_id, text) SELECT g % 20, 'x' FROM generate_series(1, 14000) g").Error)
	pinned(t)
	must(t, db.Exec(`DO $$ BEGIN FOR i IN 0..499 LOOP
		UPDATE mails SET state = 'running' WHERE id BETWEEN 20 * i + 1 AND 20 * i + 20;
		UPDATE mails SET state = 'done' WHERE id BETWEEN 20 * i + 1 AND 20 * i + 20;
	END LOOP; END $$`).Error)
	const pages = "SELECT n_tup_upd, heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read FROM pg_stat_user_tables JOIN pg_statio_user_tables USING (relid) WHERE relid = 'mails'::regclass"
	written, before := counted(t, db, 20_000, pages)
	const n = 1000
	some(t, db, n, work.OnePer("account_id"))
	_, after := counted(t, db, written+2*n, pages)
	t.Logf("%d pages a job", (after-before)/n)
	if after-before > 1600*n {
		t.Errorf("%d pages a job", (after-before)/n)
	}
}

// The server has never analyzed the table, and still reads a backlog in the order of its index.
func TestClaims_readNoBacklogOfATableThatWasNeverAnalyzed(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]work.Option{"plain": nil, "OnePer": {work.OnePer("account_id")}, "FairBy": {work.FairBy("account_id")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, opts...)
			must(t, db.Exec("ALTER TABLE mails SET (autovacuum_enabled = off)").Error)
			// One account has almost all jobs. Not with OnePer, where only its first one could be claimed.
			account := map[bool]string{true: "g % 500", false: "CASE WHEN g % 1000 = 0 THEN g ELSE 1 END"}[name == "OnePer"]
			must(t, db.Exec("INSERT INTO mails (account_id, text) SELECT "+account+", 'x' FROM generate_series(1, 200000) g").Error)
			const n = 3000
			some(t, db, n, opts...)
			_, read := counted(t, db, 2*n, `SELECT max(t.n_tup_upd), sum(i.idx_tup_read) + max(t.seq_tup_read) FROM pg_stat_user_tables t JOIN pg_stat_user_indexes i USING (relid)
				WHERE t.relid = 'mails'::regclass AND i.indexrelname <> 'mails_pkey'`)
			t.Logf("%d entries a job", read/n)
			if read > 30*n {
				t.Errorf("%d entries of indexes were read for %d jobs", read, n)
			}
		})
	}
}
