package work_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/work"
)

// trigger is DDL that makes the server refuse those updates of the bad job that match condition.
func trigger(condition, raise string) string {
	return `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.text = 'bad' AND ` + condition + ` THEN ` + raise + `; END IF; RETURN NEW; END $$;
		CREATE TRIGGER refuse BEFORE UPDATE ON mails FOR EACH ROW EXECUTE FUNCTION refuse()`
}

const (
	raise    = "RAISE 'the customer is locked'"
	free     = "DROP TRIGGER refuse ON mails"
	claiming = "NEW.state = 'running' AND OLD.state = 'ready'"
)

// spoilt are ways in which the server refuses to change one job, and the cures.
var spoilt = map[string]struct{ spoil, cure string }{
	"claim, trigger":   {trigger(claiming, raise), free},
	"claim, no table":  {trigger(claiming, "PERFORM * FROM nowhere"), free},
	"claim, policy":    {trigger(claiming, "RAISE USING ERRCODE = 'insufficient_privilege'"), free},
	"claim, network":   {trigger(claiming, "RAISE USING ERRCODE = 'connection_failure'"), free},
	"claim, password":  {trigger(claiming, "RAISE USING ERRCODE = 'invalid_password'"), free},
	"claim, conflict":  {trigger(claiming, "RAISE USING ERRCODE = 'serialization_failure'"), free},
	"claim, no column": {trigger(claiming, "PERFORM nowhere FROM mails"), free},
	"claim, not valid": {"ALTER TABLE mails ADD CONSTRAINT c CHECK (text <> 'bad') NOT VALID", "ALTER TABLE mails DROP CONSTRAINT c"},
	"claim, attempts":  {"UPDATE mails SET attempts = 9223372036854775807 WHERE text = 'bad'", "UPDATE mails SET attempts = 0"},
	"claim, another unique index": {"CREATE UNIQUE INDEX u ON mails (text) WHERE state = 'running'; INSERT INTO mails (id, text, state, claimed_until) VALUES (-1, 'bad', 'running', 'infinity')",
		"UPDATE mails SET state = 'done' WHERE id = -1"},
	"promote, lock":   {"UPDATE mails SET state = 'later', run_at = now() - interval '1 minute' * (10 - id); " + trigger("NEW.state = 'ready'", "RAISE USING ERRCODE = 'lock_not_available'"), free},
	"take over, disk": {"UPDATE mails SET state = 'running', claimed_by = 'dead', claimed_until = now() - interval '1 minute' * (10 - id); " + trigger("NEW.state = 'ready'", "RAISE USING ERRCODE = 'disk_full'"), free},
	"promote":         {"UPDATE mails SET state = 'later', run_at = now() - interval '1 minute' * (10 - id); " + trigger("NEW.state = 'ready'", raise), free},
	"take over":       {"UPDATE mails SET state = 'running', claimed_by = 'dead', claimed_until = now() - interval '1 minute' * (10 - id); " + trigger("NEW.state = 'ready'", raise), free},
}

// A job that the server refuses to change does not hold up others, and is named in the log once.
func TestRefused_othersGoOn(t *testing.T) {
	t.Parallel()
	for of, opts := range map[string][]work.Option{"plain": nil, "OnePer": {work.OnePer("account_id")}, "FairBy": {work.FairBy("account_id")}} {
		for name, how := range spoilt {
			t.Run(of+", "+name, func(t *testing.T) {
				t.Parallel()
				log := pgtest.NewLogger()
				db := openWith(t, pgtest.Plugin(gormlock.New()), pgtest.Config(func(c *gorm.Config) {
					c.Logger, c.TranslateError = log, strings.HasPrefix(name, "claim")
				}))
				must(t, work.Migrate(db, &Mail{}, opts...))
				one, other, third := int64(1), int64(2), int64(3)
				bad := &Mail{Text: "bad", AccountID: &one}
				must(t, work.Enqueue(db, bad, &Mail{Text: "a", AccountID: &other}, &Mail{Text: "b", AccountID: &third}, &Mail{Text: "c"}))
				must(t, work.Enqueue(db, &Mail{Text: "urgent", Job: work.Job{Priority: 1}}))
				var done texts
				w := worker(t, db, done.handle, opts...)
				must(t, db.Exec(how.spoil).Error)
				end := start(t, w)
				good := func() (n int64) {
					must(t, db.Model(&Mail{}).Where("state = 'done' AND text <> 'bad'").Count(&n).Error)
					return n
				}
				eventually(t, "the good ones are done", func() bool { return good() == 4 })
				named := func() bool {
					return slices.ContainsFunc(log.Lines(), func(line string) bool { return strings.Contains(line, fmt.Sprintf("jobs [%d] of mails", bad.ID)) })
				}
				eventually(t, "the bad one is named", named)
				if name == "claim, trigger" { // this one stays refused
					must(t, work.Enqueue(db, &Mail{Text: "d"}))
					eventually(t, "a further one is done", func() bool { return good() == 5 })
				}
				must(t, end())
				if lines := log.Lines(); len(lines) != 1 {
					t.Errorf("logged %q", lines)
				}
				if _, err := w.Drain(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("jobs [%d] of mails", bad.ID)) {
					t.Errorf("Drain leaves the bad one, and says %v", err)
				}
				must(t, db.Exec(how.cure).Error)
				drain(t, w)
				if now := reload(t, db, bad.ID); now.State != "done" {
					t.Errorf("after the cure the bad one is %s", now.State)
				}
			})
		}
	}
}

// With OnePer a job that cannot be claimed holds up the later ones, like a job that waits to be tried again.
func TestRefused_keepsTheOrderOfOnePer(t *testing.T) {
	t.Parallel()
	db := open(t, work.OnePer("account_id"))
	one, other := int64(1), int64(2)
	must(t, work.Enqueue(db, &Mail{Text: "bad", AccountID: &one}, &Mail{Text: "behind", AccountID: &one}, &Mail{Text: "other", AccountID: &other}))
	must(t, db.Exec(trigger(claiming, raise)).Error)
	var done texts
	w := worker(t, db, done.handle, work.OnePer("account_id"), work.Workers(1))
	if n, err := w.Drain(t.Context()); n != 1 || err == nil {
		t.Errorf("%d attempts, %v", n, err)
	}
	must(t, db.Exec(free).Error)
	drain(t, w)
	done.mustBe(t, "other", "bad", "behind")
}

// Many jobs that cannot be changed cost few statements each.
func TestRefused_many(t *testing.T) {
	t.Parallel()
	const n = 500
	for name, spoil := range map[string]string{
		"claim":     "SELECT 1",
		"promote":   "UPDATE mails SET state = 'later', run_at = now() - interval '1 minute'",
		"take over": "UPDATE mails SET state = 'running', claimed_until = now() - interval '1 minute'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.SchemaDSN(t)
			proxy, through := pgtest.Tap(t, dsn)
			beside := pgtest.Open(t, pgtest.Through(dsn))
			db := pgtest.Open(t, pgtest.Through(through), pgtest.Plugin(gormlock.New()))
			must(t, work.Migrate(db, &Mail{}))
			must(t, db.Exec(fmt.Sprintf("INSERT INTO mails (text) SELECT 'bad' FROM generate_series(1, %d)", n)).Error)
			enqueue(t, db, "good")
			must(t, db.Exec(spoil).Error)
			must(t, db.Exec(trigger("true", raise)).Error)
			var done texts
			w := worker(t, db, done.handle)
			proxy.Reset()
			end := start(t, w)
			eventually(t, "the good one is done", func() bool { return states(t, beside)["done"] == 1 })
			must(t, end())
			if sent := len(proxy.Statements()); sent > 4*n {
				t.Errorf("%d statements for %d bad jobs", sent, n)
			}
		})
	}
}

// Jobs whose leases the server does not renew are the only ones to lose them, however many jobs this process has.
func TestRefused_renewal(t *testing.T) {
	t.Parallel()
	const n = 1000
	db := open(t)
	must(t, db.Exec(fmt.Sprintf("INSERT INTO mails (text, max_attempts) SELECT CASE WHEN g %% 400 = 7 THEN 'bad' ELSE 'good' END, 1 FROM generate_series(1, %d) g", n)).Error)
	release := make(chan struct{})
	var mu sync.Mutex
	var lost []string
	var run atomic.Int64
	w := worker(t, db, func(ctx context.Context, m *Mail) error {
		run.Add(1)
		select {
		case <-ctx.Done():
			mu.Lock()
			defer mu.Unlock()
			lost = append(lost, m.Text)
			if !errors.Is(context.Cause(ctx), work.ErrTakenOver) {
				t.Error(context.Cause(ctx))
			}
		case <-release:
		}
		return nil
	}, work.Workers(n), work.Lease(12*time.Second))
	end := start(t, w)
	eventually(t, "all run", func() bool { return run.Load() == n })
	must(t, db.Exec(trigger("OLD.state = 'running' AND NEW.state = 'running'", raise)).Error)
	eventually(t, "the bad ones are taken over", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(lost) >= 3
	})
	close(release)
	eventually(t, "the others are done", func() bool { return states(t, db)["done"] == n-3 })
	must(t, end())
	if !slices.Equal(lost, []string{"bad", "bad", "bad"}) || states(t, db)["dead"] != 3 {
		t.Errorf("lost %q, %v", lost, states(t, db))
	}
}

// Outcomes that the server refuses to store do not stop the worker, and are stored once that is possible.
func TestRefused_outcomes(t *testing.T) {
	t.Parallel()
	const bad, good = 50, 2000
	log := pgtest.NewLogger()
	db := openWith(t, pgtest.Plugin(gormlock.New()), pgtest.Config(func(c *gorm.Config) { c.Logger = log }))
	must(t, db.Exec(fmt.Sprintf("INSERT INTO mails (text) SELECT 'bad' FROM generate_series(1, %d)", bad)).Error)
	must(t, db.Exec(fmt.Sprintf("INSERT INTO mails (text) SELECT 'good' FROM generate_series(1, %d)", good)).Error)
	must(t, db.Exec(trigger("NEW.state = 'done'", raise)).Error)
	var done texts
	end := start(t, worker(t, db, done.handle))
	began := time.Now()
	eventually(t, "the others are done", func() bool { return states(t, db)["done"] == good })
	if took := time.Since(began); took > bound/3 {
		t.Errorf("it took %s", took)
	}
	must(t, db.Exec(free).Error)
	eventually(t, "all are done", func() bool { return states(t, db)["done"] == bad+good })
	must(t, end())
	if len(done.all) != bad+good {
		t.Errorf("%d runs", len(done.all))
	}
	for _, line := range log.Lines() {
		if !strings.Contains(line, "the server refuses to store the outcomes of jobs [") {
			t.Errorf("logged %s", line)
		}
	}
	if n := len(log.Lines()); n == 0 || n > bad {
		t.Errorf("%d lines", n)
	}
}

// hiding is a plugin of a program that hides jobs from claims.
type hiding struct{}

func (hiding) Name() string { return "hiding" }

func (hiding) Initialize(db *gorm.DB) error {
	return db.Callback().Row().Before("gorm:row").Register("hiding", func(db *gorm.DB) {
		db.Statement.AddClause(clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "text = 'ours'"}}})
	})
}

// A plugin hides jobs from claims, but not from the statements that look for jobs. That does not keep a worker busy.
func TestClaims_pauseIfNothingIsClaimed(t *testing.T) {
	t.Parallel()
	for of, opts := range map[string][]work.Option{"plain": nil, "OnePer": {work.OnePer("account_id")}, "FairBy": {work.FairBy("account_id")}} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.SchemaDSN(t)
			proxy, through := pgtest.Tap(t, dsn)
			beside := pgtest.Open(t, pgtest.Through(dsn))
			db := pgtest.Open(t, pgtest.Through(through), pgtest.Plugin(gormlock.New()))
			must(t, work.Migrate(db, &Mail{}, opts...))
			must(t, db.Exec("INSERT INTO mails (text, account_id, priority) SELECT 'theirs', g % 40, 5 FROM generate_series(1, 3000) g").Error)
			enqueue(t, db, "ours")
			must(t, db.Use(hiding{}))
			var done texts
			w := worker(t, db, done.handle, append(opts, work.Workers(2))...)
			end := start(t, w)
			if of != "plain" { // there the hidden job waits after those of a higher priority
				eventually(t, "ours is done", func() bool { return states(t, beside)["done"] == 1 })
			}
			const while = 3 * time.Second
			proxy.Reset()
			<-time.After(while)
			if sent := len(proxy.Statements()); sent > 400 {
				t.Errorf("%d statements in %s", sent, while)
			} else {
				t.Logf("%d statements in %s", sent, while)
			}
			must(t, end())
			drain(t, w)
		})
	}
}

// Drain tries each job that is hidden from it once, however long that takes.
func TestDrain_slowlyAndInVain(t *testing.T) {
	t.Parallel()
	proxy, through := pgtest.Tap(t, pgtest.SchemaDSN(t))
	db := pgtest.Open(t, pgtest.Through(through), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(db, &Mail{}, work.FairBy("account_id")))
	must(t, db.Exec("INSERT INTO mails (text, account_id) SELECT 'theirs', g % 40 FROM generate_series(1, 400) g").Error)
	must(t, db.Use(hiding{}))
	w := worker(t, db, (&texts{}).handle, work.FairBy("account_id"), work.Workers(2))
	proxy.OnQuery(func(sql string) wiretap.Action {
		if strings.Contains(sql, "text = 'ours'") {
			<-time.After(30 * time.Millisecond) // so that making a list takes longer than the time until the next list is due
		}
		return wiretap.Pass
	})
	drain(t, w)
}

// A renewal that the server refuses is tried again soon: the reason may pass before the lease ends.
func TestRefused_renewalIsTriedAgainSoon(t *testing.T) {
	t.Parallel()
	renewedAgain(t, trigger("OLD.state = 'running' AND NEW.state = 'running' AND nextval('tries') <= 5", raise))
}

// renewedAgain runs a job whose first five renewals the server refuses, and one other, until their leases would have ended.
func renewedAgain(t *testing.T, refuse string) {
	t.Helper()
	db := open(t)
	must(t, db.Exec("CREATE SEQUENCE tries; "+refuse).Error)
	enqueue(t, db, "bad", "good")
	const lease = 6 * time.Second // leaves time for two tries if each comes after a third of it
	w := worker(t, db, func(ctx context.Context, m *Mail) error {
		select {
		case <-ctx.Done():
			t.Errorf("%s: %v", m.Text, context.Cause(ctx))
		case <-time.After(lease * 5 / 4):
		}
		return nil
	}, work.Lease(lease))
	end := start(t, w)
	eventually(t, "both are done", func() bool { return states(t, db)["done"] == 2 })
	must(t, end())
	var attempts int
	must(t, db.Raw("SELECT sum(attempts) FROM mails").Scan(&attempts).Error)
	if attempts != 2 {
		t.Errorf("%d attempts", attempts)
	}
}

// A trigger that waits for a lock for too long only makes its own job fail.
func TestRefused_waitsInATrigger(t *testing.T) {
	t.Parallel()
	for setting, wait := range map[string]string{"statement_timeout": "300ms", "lock_timeout": "100ms"} {
		for when, bad := range map[string]string{"claim": "running", "promote": "ready", "store": "done"} {
			t.Run(setting+", "+when, func(t *testing.T) {
				t.Parallel()
				dsn := pgtest.SchemaDSN(t)
				db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()), pgtest.Param(setting, wait))
				beside := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
				must(t, work.Migrate(beside, &Mail{}))
				enqueue(t, db, "a", "b", "bad", "c", "d")
				if when == "promote" {
					must(t, beside.Exec("UPDATE mails SET state = 'later', run_at = now() - interval '1 minute' * (10 - id)").Error)
				}
				must(t, beside.Exec("CREATE TABLE busy AS SELECT 1 AS n; "+trigger("NEW.state = '"+bad+"'", "PERFORM FROM busy FOR UPDATE")).Error)
				locker := beside.Begin()
				must(t, locker.Exec("SELECT FROM busy FOR UPDATE").Error)
				var done texts
				end := start(t, worker(t, db, done.handle))
				eventually(t, "the good ones are done", func() bool { return states(t, beside)["done"] == 4 })
				must(t, locker.Rollback().Error)
				eventually(t, "the bad one is done", func() bool { return states(t, beside)["done"] == 5 })
				must(t, end())
			})
		}
	}
}

// If something keeps all jobs from being changed, such as a lock of the table or a missing privilege, no single job is blamed. All go on once it is
// over.
func TestRefused_notForWhatHitsAll(t *testing.T) {
	t.Parallel()
	for of, opts := range map[string][]work.Option{"plain": nil, "OnePer": {work.OnePer("account_id")}, "FairBy": {work.FairBy("account_id")}} {
		for when, spoil := range map[string]string{
			"claim": "SELECT 1", "promote": "UPDATE mails SET state = 'later'",
			"take over": "UPDATE mails SET state = 'running', claimed_by = 'dead', claimed_until = now() - interval '1 minute'",
		} {
			for by, code := range map[string]string{"lock": "55P03", "right": "42501"} {
				t.Run(of+", "+when+", "+by, func(t *testing.T) {
					t.Parallel()
					log := pgtest.NewLogger()
					dsn := pgtest.SchemaDSN(t)
					beside := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
					must(t, work.Migrate(beside, &Mail{}, opts...))
					const n = 6
					for i := range int64(n) {
						must(t, work.Enqueue(beside, &Mail{AccountID: &i}))
					}
					must(t, beside.Exec(spoil).Error)
					with := pgtest.Param("lock_timeout", "50ms")
					if by == "right" {
						with = pgtest.Param("role", reader(t, beside))
					}
					db := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()), with, pgtest.Config(func(c *gorm.Config) { c.Logger = log }))
					var done texts
					w := worker(t, db, done.handle, opts...)
					locker := beside.Begin()
					if by == "lock" {
						must(t, locker.Exec("LOCK TABLE mails IN SHARE MODE").Error)
					}
					end := start(t, w)
					eventually(t, "the error is logged", func() bool {
						return slices.ContainsFunc(log.Lines(), func(line string) bool { return strings.Contains(line, code) })
					})
					must(t, locker.Rollback().Error)
					must(t, beside.Exec("GRANT UPDATE ON mails TO PUBLIC").Error)
					eventually(t, "all are done", func() bool { return states(t, beside)["done"] == n })
					must(t, end())
					for _, line := range log.Lines() {
						if strings.Contains(line, "refuses") {
							t.Errorf("logged %s", line)
						}
					}
				})
			}
		}
	}
}

// reader makes a role that may read the jobs but not change them.
func reader(t *testing.T, db *gorm.DB) string {
	t.Helper()
	role := "reader_" + strings.ToLower(rand.Text())
	must(t, db.Exec(fmt.Sprintf(`CREATE ROLE %[1]s; GRANT SELECT, INSERT, DELETE, REFERENCES, TRIGGER ON mails TO %[1]s;
		DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %%I TO %[1]s', current_schema()); END $$`, role)).Error)
	t.Cleanup(func() {
		must(t, db.WithContext(context.Background()).Exec(fmt.Sprintf("DROP OWNED BY %[1]s; DROP ROLE %[1]s", role)).Error)
	})
	return role
}

// If all jobs that were tried are refused, the log does not say that the others go on.
func TestRefused_all(t *testing.T) {
	t.Parallel()
	log := pgtest.NewLogger()
	db := openWith(t, pgtest.Plugin(gormlock.New()), pgtest.Config(func(c *gorm.Config) { c.Logger = log }))
	must(t, db.Exec("INSERT INTO mails (text) SELECT 'bad' FROM generate_series(1, 5)").Error)
	must(t, db.Exec(trigger(claiming, raise)).Error)
	var done texts
	end := start(t, worker(t, db, done.handle))
	eventually(t, "the refusal is logged", func() bool { return len(log.Lines()) > 0 })
	must(t, end())
	for _, line := range log.Lines() {
		if !strings.Contains(line, "it has refused all that were tried") {
			t.Errorf("logged %s", line)
		}
	}
}
