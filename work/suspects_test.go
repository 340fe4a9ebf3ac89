package work_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// limit is the lock_timeout of a worker that has jobs for which a trigger waits for a lock.
const limit = time.Second

// waiting returns a table of n jobs. For bad of them, a trigger waits for a lock before a change that matches condition. The lock is held until
// free is called.
func waiting(t *testing.T, n, bad int, condition string, opts ...work.Option) (db, beside *gorm.DB, free func()) {
	t.Helper()
	dsn := pgtest.SchemaDSN(t)
	beside = pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(beside, &Mail{}, opts...))
	must(t, beside.Exec(fmt.Sprintf("INSERT INTO mails (text, account_id) SELECT CASE WHEN g %% %[1]d = 7 AND g / %[1]d < %[2]d THEN 'bad' ELSE 'good' END, g FROM generate_series(1, %[3]d) g", n/bad, bad, n)).Error)
	must(t, beside.Exec("CREATE TABLE busy AS SELECT 1 AS n; CREATE SEQUENCE waits; "+trigger(condition, "PERFORM nextval('waits'); PERFORM FROM busy FOR UPDATE")).Error)
	locker := beside.Begin()
	must(t, locker.Exec("SELECT FROM busy FOR UPDATE").Error)
	t.Cleanup(func() { locker.Rollback() })
	db = pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()), pgtest.Param("lock_timeout", limit.String()))
	return db, beside, func() { must(t, locker.Rollback().Error) }
}

// waits returns how often the trigger of a table has waited.
func waits(t *testing.T, db *gorm.DB) (n int) {
	t.Helper()
	must(t, db.Raw("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM waits").Scan(&n).Error)
	return n
}

// Jobs for which a trigger waits until a timeout do not hold up the others for long, and later jobs hardly at all.
func TestSuspects_waitUntilATimeout(t *testing.T) {
	t.Parallel()
	const n = 200
	for of, opts := range map[string][]work.Option{"plain": nil, "OnePer": {work.OnePer("account_id")}, "FairBy": {work.FairBy("account_id")}} {
		for when, how := range map[string]struct{ spoil, condition string }{
			"claim":     {"SELECT 1", claiming},
			"promote":   {"UPDATE mails SET state = 'later'", "NEW.state = 'ready'"},
			"take over": {"UPDATE mails SET state = 'running', claimed_by = 'dead', claimed_until = now() - interval '1 minute'", "NEW.state = 'ready'"},
			"store":     {"SELECT 1", "NEW.state = 'done'"},
		} {
			for bad, most := range map[int]int{1: 4, 3: 9} {
				if of != "plain" && (when != "claim" || bad == 1) || of == "OnePer" && when == "take over" {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s, %d", of, when, bad), func(t *testing.T) {
					t.Parallel()
					db, beside, free := waiting(t, n, bad, how.condition, opts...)
					must(t, beside.Exec("ALTER TABLE mails DISABLE TRIGGER refuse; "+how.spoil+"; ALTER TABLE mails ENABLE TRIGGER refuse").Error)
					var done texts
					began := time.Now()
					end := start(t, worker(t, db, done.handle, append(opts, work.Lease(12*limit))...))
					eventually(t, "the good ones are done", func() bool { return states(t, beside)["done"] == n-bad })
					waited := waits(t, beside)
					if t.Logf("the others took %s, and %d waits", time.Since(began), waited); waited > most {
						t.Errorf("%d waits until the others were done", waited)
					}
					must(t, work.Enqueue(beside, &Mail{Text: "further"}))
					eventually(t, "a further one is done", func() bool { return states(t, beside)["done"] == n-bad+1 })
					if more := waits(t, beside) - waited; more > 5 {
						t.Errorf("%d waits until a further one was done", more)
					}
					free()
					eventually(t, "the bad ones are done", func() bool { return states(t, beside)["done"] == n+1 })
					must(t, end())
					var again int
					must(t, beside.Raw("SELECT count(*) FROM mails WHERE attempts > 1").Scan(&again).Error)
					if again > 0 || len(done.all) != n+1 {
						t.Errorf("%d were tried again, %d runs", again, len(done.all))
					}
				})
			}
		}
	}
}

// The other leases are renewed, even if each lease that cannot be renewed costs a twelfth of its length.
func TestSuspects_leases(t *testing.T) {
	t.Parallel()
	const n = 200
	for bad := range 4 {
		if bad%2 == 0 {
			continue
		}
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			t.Parallel()
			const lease = 12 * limit
			db, beside, free := waiting(t, n, bad, "OLD.state = 'running' AND NEW.state = 'running'")
			release := make(chan struct{})
			var lost texts
			w := worker(t, db, func(ctx context.Context, m *Mail) error {
				select {
				case <-ctx.Done():
					lost.add(m.Text)
				case <-release:
				}
				return nil
			}, work.Workers(n+bad), work.Lease(lease))
			end := start(t, w)
			<-time.After(lease * 3 / 2)
			free()
			close(release)
			eventually(t, "all are done", func() bool { return states(t, beside)["done"] == n })
			must(t, end())
			lost.mu.Lock()
			defer lost.mu.Unlock()
			if slices.Contains(lost.all, "good") || len(lost.all) > bad {
				t.Errorf("lost %q", lost.all)
			}
			var again int
			must(t, beside.Raw("SELECT count(*) FROM mails WHERE attempts > 1 AND text = 'good'").Scan(&again).Error)
			if again > 0 {
				t.Errorf("%d were tried again", again)
			}
		})
	}
}

// If a trigger refuses whole statements, no job is blamed. After the cure all go on within about five seconds, however long it lasted.
func TestSuspects_goOnAfterACure(t *testing.T) {
	t.Parallel()
	const n = 100
	for when, how := range map[string]struct{ spoil, state string }{
		"claim":     {"SELECT 1", "running"},
		"promote":   {"UPDATE mails SET state = 'later'", "ready"},
		"take over": {"UPDATE mails SET state = 'running', claimed_by = 'dead', claimed_until = now() - interval '1 minute'", "ready"},
		"store":     {"SELECT 1", "done"},
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			must(t, db.Exec(fmt.Sprintf("INSERT INTO mails (text) SELECT 'x' FROM generate_series(1, %d)", n)).Error)
			must(t, db.Exec(how.spoil).Error)
			must(t, db.Exec(fmt.Sprintf(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT FROM changed WHERE state = '%s') THEN RAISE 'not now'; END IF; RETURN NULL; END $$;
				CREATE TRIGGER refuse AFTER UPDATE ON mails REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION refuse()`, how.state)).Error)
			var done texts
			end := start(t, worker(t, db, done.handle))
			<-time.After(14 * time.Second)
			must(t, db.Exec(free).Error)
			began := time.Now()
			eventually(t, "all are done", func() bool { return states(t, db)["done"] == n })
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("it took %s", took)
			} else {
				t.Logf("it took %s", took)
			}
			must(t, end())
		})
	}
}

// If the server refuses to store how a job has ended, Drain ends and names that job.
func TestDrain_namesWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	db := open(t)
	mails := enqueue(t, db, "a", "bad", "b")
	must(t, db.Exec(trigger("NEW.state = 'done'", raise)).Error)
	var seen texts
	w := worker(t, db, seen.handle)
	ctx, stop := context.WithTimeout(t.Context(), bound)
	defer stop()
	n, err := w.Drain(ctx)
	if n != 3 || ctx.Err() != nil || err == nil || !strings.Contains(err.Error(), fmt.Sprintf("store the outcomes of jobs [%d] of mails", mails[1].ID)) || !strings.Contains(err.Error(), "the customer is locked") {
		t.Errorf("%d attempts, %v", n, err)
	}
	if got := states(t, db); got["done"] != 2 || got["running"] != 1 {
		t.Errorf("states %v", got)
	}
}

// If the server refuses the text of an error, the outcome is stored with as much of the text as the server accepts, and the log has all of it.
func TestLastError_thatIsRefused(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]struct{ spoil, want string }{
		"varchar": {"ALTER TABLE mails ALTER last_error TYPE varchar(255)", "great"},
		"short":   {"ALTER TABLE mails ALTER last_error TYPE varchar(20)", ""},
		"index":   {"CREATE INDEX ON mails (last_error)", "great"},
		"CHECK":   {"ALTER TABLE mails ADD CHECK (length(last_error) < 100)", "great"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := pgtest.NewLogger()
			db := openWith(t, pgtest.Plugin(gormlock.New()), pgtest.Config(func(c *gorm.Config) { c.Logger = log }))
			long := "great ü"
			for len(long) < 12_000 {
				long += rand.Text()
			}
			must(t, db.Exec(how.spoil).Error)
			mails := enqueue(t, db, "a", "bad", "b")
			w := worker(t, db, func(_ context.Context, m *Mail) error {
				if m.Text == "bad" {
					return work.Dead(errors.New(long))
				}
				return work.Dead(errors.New("small " + m.Text))
			})
			if n := drain(t, w); n != 3 {
				t.Errorf("%d attempts", n)
			}
			for i, want := range []string{"small a", how.want, "small b"} {
				if m := reload(t, db, mails[i].ID); m.State != "dead" || !strings.HasPrefix(m.LastError, want) || len(m.LastError) > 12_000 {
					t.Errorf("job %s is %s: %q", m.Text, m.State, m.LastError)
				}
			}
			if lines := log.Lines(); len(lines) != 1 || !strings.Contains(lines[0], long) || !strings.Contains(lines[0], fmt.Sprintf("job %d of mails", mails[1].ID)) {
				t.Errorf("logged %d lines: %.200q", len(lines), lines)
			}
		})
	}
}

// The job of a dead worker is taken over even if the server refuses the text that says so. The log says that too.
func TestTakeOver_withoutItsText(t *testing.T) {
	t.Parallel()
	log := pgtest.NewLogger()
	db := openWith(t, pgtest.Plugin(gormlock.New()), pgtest.Config(func(c *gorm.Config) { c.Logger = log }))
	mails := enqueue(t, db, "a", "b")
	must(t, db.Exec("UPDATE mails SET state = 'running', claimed_by = 'dead', claimed_until = now() - interval '1 minute', last_error = 'before'").Error)
	must(t, db.Exec("ALTER TABLE mails ALTER last_error TYPE varchar(20)").Error)
	var done texts
	drain(t, worker(t, db, done.handle))
	for _, m := range mails {
		if got := reload(t, db, m.ID); got.State != "done" || got.LastError != "before" {
			t.Errorf("%s, %q", got.State, got.LastError)
		}
	}
	if lines := log.Lines(); len(lines) != 2 || !strings.Contains(lines[0], fmt.Sprintf("take over job %d of mails with a text", mails[0].ID)) {
		t.Errorf("logged %q", lines)
	}
}

// Jobs that were claimed together with a refused one do not wait for everything else that can be claimed.
func TestSuspects_doNotWaitForABacklog(t *testing.T) {
	t.Parallel()
	const n = 3000
	for of, opts := range map[string][]work.Option{"plain": nil, "FairBy": {work.FairBy("account_id")}} {
		for _, workers := range []int{1, 10} {
			t.Run(fmt.Sprintf("%s, %d", of, workers), func(t *testing.T) {
				t.Parallel()
				db := open(t, opts...)
				must(t, db.Exec(fmt.Sprintf("INSERT INTO mails (text, priority) SELECT CASE WHEN g = 7 THEN 'bad' WHEN g < 20 THEN 'urgent' ELSE 'good' END, CASE WHEN g < 20 THEN 1 ELSE 0 END FROM generate_series(1, %d) g", n)).Error)
				must(t, db.Exec(trigger(claiming, raise)).Error)
				var done texts
				end := start(t, worker(t, db, func(ctx context.Context, m *Mail) error {
					select {
					case <-ctx.Done():
					case <-time.After(5 * time.Millisecond):
					}
					return done.handle(ctx, m)
				}, append(opts, work.Workers(workers))...))
				eventually(t, "the urgent ones are done", func() bool {
					done.mu.Lock()
					defer done.mu.Unlock()
					return strings.Count(strings.Join(done.all, " "), "urgent") == 18
				})
				must(t, end())
				if len(done.all) > n/5 {
					t.Errorf("%d were done before", len(done.all))
				}
			})
		}
	}
}

// Jobs that the server accepts again take turns with those of a higher priority, even if few can be claimed at once.
func TestSuspects_takeTurns(t *testing.T) {
	t.Parallel()
	for of, opts := range map[string][]work.Option{"plain": nil, "FairBy": {work.FairBy("account_id")}} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			const bad, urgent = 200, 30
			db := open(t, opts...)
			must(t, db.Exec(fmt.Sprintf("INSERT INTO mails (text) SELECT 'bad' FROM generate_series(1, %d)", bad)).Error)
			must(t, db.Exec(trigger(claiming, raise)).Error)
			var done texts
			end := start(t, worker(t, db, func(ctx context.Context, m *Mail) error {
				<-time.After(10 * time.Millisecond)
				return done.handle(ctx, m)
			}, append(opts, work.Workers(1))...))
			must(t, work.Enqueue(db, &Mail{Text: "good"}))
			eventually(t, "the good one is done", func() bool { return states(t, db)["done"] == 1 })
			must(t, db.Exec(free).Error)
			eventually(t, "bad ones are done", func() bool { return states(t, db)["done"] > 3 })
			mails := make([]*Mail, urgent)
			for i := range mails {
				mails[i] = &Mail{Text: "urgent", Job: work.Job{Priority: 1}}
			}
			before := states(t, db)["done"]
			must(t, work.Enqueue(db, mails...))
			eventually(t, "the urgent ones are done", func() bool {
				done.mu.Lock()
				defer done.mu.Unlock()
				return strings.Count(strings.Join(done.all, " "), "urgent") == urgent
			})
			must(t, end())
			if others := len(done.all) - urgent - before; others > 2*urgent {
				t.Errorf("%d others were done before %d urgent ones", others, urgent)
			}
		})
	}
}
