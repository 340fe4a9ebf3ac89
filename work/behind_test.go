package work_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// P31: the index entries of claimed jobs stay until vacuum, which can remove nothing while a transaction is open. Claims do not walk over them.
func TestClaims_seekPastWhatWasClaimed(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, db.Exec("ALTER TABLE mails SET (autovacuum_enabled = off)").Error)
	must(t, db.Exec("ANALYZE mails").Error) // for a while the statistics say that no jobs run
	const n = 3000
	must(t, db.Exec(fmt.Sprintf("INSERT INTO mails (text) SELECT 'x' FROM generate_series(1, %d)", n)).Error)
	pinned := pgtest.Conn(t)
	for _, text := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT txid_current()"} {
		_, err := pinned.Exec(t.Context(), text)
		must(t, err)
	}
	// One worker with fast handlers claims few jobs at a time.
	w := worker(t, db, func(context.Context, *Mail) error {
		time.Sleep(100 * time.Microsecond) //nolint:forbidigo // the work
		return nil
	}, work.Workers(1))
	if got := drain(t, w); got != n {
		t.Errorf("%d attempts", got)
	}
	_, read := counted(t, db, 2*n, `SELECT max(t.n_tup_upd), max(i.idx_tup_read) FROM pg_stat_user_tables t JOIN pg_stat_user_indexes i USING (relid)
		WHERE t.relid = 'mails'::regclass AND i.indexrelname <> 'mails_pkey'`)
	// The claims read each job once or twice. The looks at the beginning and at the end read everything that was claimed.
	if read > 6*n {
		t.Errorf("%d entries of the index were read for %d jobs", read, n)
	}
}

// Nobody is notified of these jobs, and claims have passed them: one is committed late, and one comes back. They are found within five seconds,
// even while there are always other jobs.
func TestRun_looksBehindItself(t *testing.T) {
	t.Parallel()
	for name, busy := range map[string]bool{"idle": false, "busy": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			late := db.Begin()
			must(t, late.Exec("INSERT INTO mails (text) VALUES ('late')").Error)
			must(t, db.Exec("INSERT INTO mails (text, state) VALUES ('back', 'dead')").Error)
			must(t, db.Exec("INSERT INTO mails (text) SELECT 'x' FROM generate_series(1, 50)").Error)
			if busy {
				must(t, db.Exec("INSERT INTO mails (text) SELECT 'slow' FROM generate_series(1, 20000)").Error)
			}
			var quick, found atomic.Int32
			start(t, worker(t, db, func(_ context.Context, m *Mail) error {
				switch m.Text {
				case "x":
					quick.Add(1)
				case "slow":
					time.Sleep(2 * time.Millisecond) //nolint:forbidigo // the work
				default:
					found.Add(1)
				}
				return nil
			}, work.Workers(2), work.Grace(time.Second)))
			eventually(t, "the first", func() bool { return quick.Load() == 50 })
			must(t, late.Commit().Error)
			must(t, db.Exec("UPDATE mails SET state = 'ready' WHERE text = 'back'").Error)
			began := time.Now()
			eventually(t, "those behind", func() bool { return found.Load() == 2 })
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("they were found after %s", took)
			}
		})
	}
}

// A plan that was made while the table was small reads all of it. No such plan is kept.
func TestStatements_keepNoPlanOfASmallTable(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, db.Exec("ALTER TABLE mails SET (autovacuum_enabled = off)").Error)
	w := worker(t, db, func(context.Context, *Mail) error { return nil }, work.Workers(1))
	for range 20 { // more than it takes until the server keeps a prepared statement's plan
		enqueue(t, db, "x", "x")
		drain(t, w)
	}
	const n = 5000
	must(t, db.Exec(fmt.Sprintf("INSERT INTO mails (text) SELECT 'x' FROM generate_series(1, %d)", n)).Error)
	drain(t, w)
	_, read := counted(t, db, 2*n, inTurn)
	// With kept plans it is 2,000,000.
	if read > n {
		t.Errorf("%d rows were read one after the other for %d jobs", read, n)
	}
}

// inTurn selects how many rows were written, and how many were read by scans of the whole table.
const inTurn = "SELECT n_tup_upd, seq_tup_read FROM pg_stat_user_tables WHERE relid = 'mails'::regclass"

// counted returns the server's counters, which come late, once the first one is at least that large.
func counted(t testing.TB, db *gorm.DB, least int64, ask string) (first, second int64) {
	t.Helper()
	before := int64(-1)
	eventually(t, "the server's counts", func() bool {
		before = second
		time.Sleep(1200 * time.Millisecond) //nolint:forbidigo // a backend reports its counters once a second
		must(t, db.Raw(ask).Row().Scan(&first, &second))
		return first >= least && second == before
	})
	return first, second
}

// If a table was analyzed when all jobs were ready, its statistics say that this process has no jobs. A plan that trusts them reads the whole table
// for each batch of outcomes, and compares each row with each outcome.
func TestStatements_findJobsByTheirKeys(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, db.Exec("ALTER TABLE mails SET (autovacuum_enabled = off)").Error)
	const n = 10_000
	must(t, db.Exec(fmt.Sprintf("INSERT INTO mails (text) SELECT 'x' FROM generate_series(1, %d)", n)).Error)
	must(t, db.Exec("ANALYZE mails").Error)
	_, before := counted(t, db, 0, inTurn)
	drain(t, worker(t, db, func(context.Context, *Mail) error { return nil }, work.Workers(16), work.Lease(600*time.Millisecond)))
	if _, after := counted(t, db, 2*n, inTurn); after-before > n {
		t.Errorf("%d rows were read one after the other for %d jobs", after-before, n)
	}
}
