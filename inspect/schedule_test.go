package inspect_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/chromium"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// program is a process with a leader, an elector, a slot, and schedules in every state.
type program struct {
	t      *testing.T
	db     *sql.DB
	leases *lease.Manager
	wg     sync.WaitGroup
	ctx    context.Context
}

func newProgram(t *testing.T, db *sql.DB) *program {
	t.Helper()
	leases := leasesOf(t, db)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	p := &program{t: t, db: db, leases: leases, ctx: ctx}
	t.Cleanup(func() {
		stop()
		p.wg.Wait()
	})
	return p
}

func (p *program) lead(key lockkey.Key) {
	leads := make(chan struct{})
	p.wg.Go(func() {
		_ = p.leases.Lead(p.ctx, key, time.Minute, func(ctx context.Context) error {
			close(leads)
			<-ctx.Done()
			return nil
		})
	})
	pgtest.Await(p.t, "a leader", leads)
}

// every runs a schedule whose row looks unattended for the time by, and returns when run was called.
func (p *program) every(key lockkey.Key, step, by time.Duration, run func(ctx context.Context) error, opts ...lease.EveryOption) {
	p.row(key, "now() - $3::float8 * interval '1 second'", by.Seconds())
	ran := make(chan struct{})
	var once sync.Once
	p.wg.Go(func() {
		_ = p.leases.Every(p.ctx, key, lease.Interval(step), func(ctx context.Context, _ time.Time) error {
			once.Do(func() { close(ran) })
			return run(ctx)
		}, opts...)
	})
	pgtest.Await(p.t, "a run", ran)
}

// row is a schedule that was settled at a time.
func (p *program) row(key lockkey.Key, settled string, args ...any) {
	p.t.Helper()
	id, _ := key.Int64()
	_, err := p.db.ExecContext(p.t.Context(), `INSERT INTO gormlock_schedule (space, id, name, settled_at, attempts, owner, token, failures)
		VALUES (1, $1, $2, `+settled+`, 0, 'worker-1', 0, 0)`, append([]any{id, key.String()}, args...)...)
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *program) exec(query string, args ...any) {
	p.t.Helper()
	if _, err := p.db.ExecContext(p.t.Context(), query, args...); err != nil {
		p.t.Fatal(err)
	}
}

// schedules are five, one in each state.
func (p *program) schedules() {
	p.every(lockkey.Of("report", "hourly"), time.Hour, 61*time.Minute, func(context.Context) error { return nil })
	p.every(lockkey.Of("import", "daily"), 24*time.Hour, 25*time.Hour, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	p.every(lockkey.Of("mail", "weekly"), 7*24*time.Hour, 8*24*time.Hour, func(context.Context) error {
		return errors.New("smtp: <b>no such host</b>\nsecond line")
	}, lease.Tries(1_000))
	p.row(lockkey.Of("backup", "gone"), "now() - interval '2 days'")
	p.exec(`UPDATE gormlock_schedule SET tick_at = now() - interval '1 day', attempts = 2, done_at = settled_at WHERE name = 'backup/gone'`)
	p.row(lockkey.Of("cleanup", "forgotten"), "now() - interval '2 days'")
	p.exec(`UPDATE gormlock_schedule SET next_at = now() - interval '1 day', done_at = settled_at WHERE name = 'cleanup/forgotten'`)
}

// failed waits until a run of the key has failed.
func (p *program) failed(key lockkey.Key) {
	p.t.Helper()
	for failures, deadline := 0, time.Now().Add(time.Minute); failures == 0; {
		if err := p.db.QueryRowContext(p.t.Context(), "SELECT failures FROM gormlock_schedule WHERE name = $1", key.String()).Scan(&failures); err != nil || time.Now().After(deadline) {
			p.t.Fatal("no run has failed", err)
		}
	}
}

func TestSnapshot_showsLeadersAndSlots(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	p := newProgram(t, db)
	p.lead(lockkey.Of("importer"))
	if err := lease.Elector(p.leases, lockkey.Of("scheduler"), time.Minute).IsLeader(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := p.leases.Acquire(t.Context(), lockkey.Of("payments"), time.Minute, lease.Slots(5)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.leases.Acquire(t.Context(), lockkey.Pair(1, 2), time.Minute, lease.Slots(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.leases.Acquire(t.Context(), lockkey.Of("plain"), time.Minute); err != nil {
		t.Fatal(err)
	}
	got := map[string]inspect.Lease{}
	for _, l := range snapshot(t, db).Leases {
		got[l.Key] = l
	}
	for key, want := range map[string]inspect.Lease{
		"importer": {Leader: true}, "scheduler": {Leader: true}, "plain": {},
		"payments slot 0": {Slot: 0, Slots: 5}, "payments slot 1": {Slot: 1, Slots: 5}, "pair(1,2) slot 0": {Slots: 1},
	} {
		l, ok := got[key]
		if !ok || l.Leader != want.Leader || l.Slot != want.Slot || l.Slots != want.Slots || l.Owner != "worker-3" || l.Token == 0 {
			t.Errorf("%s: %+v", key, l)
		}
	}
	if len(got) != 6 {
		t.Errorf("%d leases", len(got))
	}
}

func TestSnapshot_showsSchedules(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	p := newProgram(t, db)
	p.schedules()
	p.failed(lockkey.Of("mail", "weekly"))
	var v *inspect.View
	got := map[string]inspect.Schedule{}
	for deadline := time.Now().Add(time.Minute); ; {
		v = snapshot(t, db)
		for _, s := range v.Schedules {
			got[s.Key] = s
		}
		if s := got["report/hourly"]; s.State(v.Taken) == inspect.ScheduleWaits || time.Now().After(deadline) {
			break
		}
	}
	if v.Totals.Schedules != 5 || len(v.Schedules) != 5 || len(v.Unseen) != 0 {
		t.Errorf("%d schedules of %d, unseen %v", len(v.Schedules), v.Totals.Schedules, v.Unseen)
	}
	if first := v.Schedules[0]; first.Failures == 0 {
		t.Errorf("the first is %+v, want the one that fails", first)
	}
	for key, want := range map[string]inspect.ScheduleState{
		"report/hourly": inspect.ScheduleWaits, "import/daily": inspect.ScheduleRuns, "mail/weekly": inspect.ScheduleRetries,
		"backup/gone": inspect.ScheduleOrphaned, "cleanup/forgotten": inspect.ScheduleOverdue,
	} {
		s := got[key]
		// a failing schedule also runs now and then
		if state := s.State(v.Taken); state != want && (key != "mail/weekly" || state != inspect.ScheduleRuns) {
			t.Errorf("%s %s, want that it %s: %+v", key, state, want, s)
		}
	}
	if s := got["report/hourly"]; s.Next.Sub(s.Last) != time.Hour || s.Owner != "worker-3" || s.Failures != 0 || !s.Tick.IsZero() || !s.Next.After(v.Taken) {
		t.Errorf("the one that waits: %+v", s)
	}
	if s := got["import/daily"]; s.Attempts != 1 || s.Tick.IsZero() || s.Next.Sub(s.Tick) != 24*time.Hour {
		t.Errorf("the one that runs: %+v", s)
	}
	if s := got["mail/weekly"]; s.Failures == 0 || !strings.HasPrefix(s.Problem, "smtp: ") || s.Attempts == 0 || !s.Last.IsZero() {
		t.Errorf("the one that fails: %+v", s)
	}
}

// If the role may not read the table, the view says so, and shows the rest.
func TestSnapshot_ofSchedulesThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	db := pgtest.SQLDB(t, pgtest.Through(dsn))
	p := newProgram(t, db)
	p.schedules()
	p.lead(lockkey.Of("importer"))
	var schema string
	if err := db.QueryRowContext(t.Context(), "SELECT current_schema()").Scan(&schema); err != nil {
		t.Fatal(err)
	}
	role := fmt.Sprintf("reader_%s", schema)
	p.exec("CREATE ROLE " + role)
	t.Cleanup(func() {
		if _, err := db.ExecContext(context.Background(), "DROP OWNED BY "+role+"; DROP ROLE "+role); err != nil {
			t.Error(err)
		}
	})
	p.exec("GRANT USAGE ON SCHEMA " + schema + " TO " + role)
	p.exec("GRANT SELECT ON gormlock_lease, gormlock_fence TO " + role)
	v := snapshot(t, pgtest.SQLDB(t, pgtest.Through(dsn), pgtest.Param("role", role)))
	if len(v.Schedules) != 0 || len(v.Leases) == 0 || !strings.Contains(strings.Join(v.Unseen, "\n"), "GRANT SELECT ON gormlock_schedule TO "+role) {
		t.Errorf("%+v, %v", v.Schedules, v.Unseen)
	}
	p.exec("GRANT SELECT ON gormlock_schedule TO " + role)
	p.exec("REVOKE SELECT ON gormlock_lease FROM " + role)
	v = snapshot(t, pgtest.SQLDB(t, pgtest.Through(dsn), pgtest.Param("role", role)))
	if len(v.Schedules) != 5 || len(v.Leases) != 0 {
		t.Errorf("without leases: %+v, %v", v.Schedules, v.Unseen)
	}
}

// The page shows leaders, slots and schedules.
func TestPage_inChromiumShowsSchedules(t *testing.T) {
	t.Parallel()
	b := chromium.New(t)
	dsn := pgtest.Database(t)
	p := newProgram(t, pgtest.SQLDB(t, pgtest.Through(dsn)))
	p.lead(lockkey.Of("importer"))
	if _, err := p.leases.Acquire(t.Context(), lockkey.Of("payments"), time.Minute, lease.Slots(5)); err != nil {
		t.Fatal(err)
	}
	p.schedules()
	p.failed(lockkey.Of("mail", "weekly"))
	_, address := serve(t, dsn, inspect.Refresh(200*time.Millisecond))
	b.Screen(1280, 900, "light", false)
	b.Open(address)
	row := func(panel, key string) string {
		return fmt.Sprintf("[...document.querySelectorAll('.panel.%s tbody tr')].filter(r => r.querySelector('.key').textContent === %q)[0]", panel, key)
	}
	for _, c := range []struct{ panel, key, text string }{
		{"leases", "importer", "leader"}, {"leases", "payments slot 0", "slot 0 of 5"},
		{"schedules", "report/hourly", "waits"}, {"schedules", "report/hourly", "in 58 min"}, {"schedules", "report/hourly", "worker-3"},
		{"schedules", "import/daily", "runs"}, {"schedules", "mail/weekly", "smtp: <b>no such host</b>"},
		{"schedules", "backup/gone", "orphaned"}, {"schedules", "backup/gone", "try 2"}, {"schedules", "backup/gone", "2 days ago"},
		{"schedules", "cleanup/forgotten", "overdue"},
	} {
		b.Wait(fmt.Sprintf("!!%s && %[1]s.textContent.includes(%q)", row(c.panel, c.key), c.text))
	}
	for key, color := range map[string]bool{"cleanup/forgotten": true, "mail/weekly": true, "import/daily": false} {
		if late := b.Eval(row("schedules", key) + ".classList.contains('late')"); late != color {
			t.Errorf("%s is marked as one to look at: %v", key, late)
		}
	}
	if bold := b.Eval("document.querySelectorAll('.hint b').length"); bold != 0.0 {
		t.Errorf("%v elements come from the text of an error", bold)
	}
	// Deleted rows disappear at the next look.
	p.exec("DELETE FROM gormlock_schedule WHERE name = 'cleanup/forgotten'")
	b.Wait("!" + row("schedules", "cleanup/forgotten"))
	b.Screen(390, 800, "dark", true)
	if width := b.Eval("document.documentElement.scrollWidth <= window.innerWidth"); width != true {
		t.Error("on a telephone the page is wider than the screen")
	}
}
