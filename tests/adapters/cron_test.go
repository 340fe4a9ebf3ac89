package adapters

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// The schedules of robfig/cron fit as they are: two processes run each tick once, and after an outage none is missing.
func TestCron_schedulesFit(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	if err := lease.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	secondly, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse("*/2 * * * * *")
	if err != nil {
		t.Fatal(err)
	}
	key := lockkey.Of("report", "secondly")
	id, _ := key.Int64()
	if _, err := db.ExecContext(t.Context(), `INSERT INTO gormlock_schedule (space, id, name, settled_at, attempts, owner, token, failures)
		VALUES (1, $1, 'report/secondly', now() - interval '20 seconds', 0, '', 0, 0)`, id); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ticks, ended := make(chan time.Time, 100), make(chan error, 2)
	for range 2 {
		leases, err := lease.New(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = leases.Close(context.Background()) })
		go func() {
			ended <- leases.Every(ctx, key, secondly, func(_ context.Context, tick time.Time) error {
				ticks <- tick
				return nil
			}, lease.Missed(lease.RunAll))
		}()
	}
	last := <-ticks
	for range 11 { // the outage, and what comes after it
		tick := <-ticks
		if tick.Sub(last) != 2*time.Second || tick.Second()%2 != 0 {
			t.Errorf("after %s came %s", last, tick)
		}
		last = tick
	}
	stop()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// Local times are those of CRON_TZ, for Every asks in UTC; robfig/cron leaves out a time that does not exist, Daily does not.
func TestCron_localTimes(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	var schedule lease.Schedule
	if schedule, err = cron.ParseStandard("CRON_TZ=Europe/Berlin 30 2 * * *"); err != nil {
		t.Fatal(err)
	}
	before := time.Date(2026, time.March, 28, 12, 0, 0, 0, time.UTC) // the night has no half past two
	if next := schedule.Next(before).In(berlin); next.Day() != 30 || next.Hour() != 2 {
		t.Errorf("cron's next is %s", next)
	}
	if next := lease.Daily(2, 30, berlin).Next(before).In(berlin); next.Day() != 29 || next.Hour() != 3 || next.Minute() != 0 {
		t.Errorf("Daily's next is %s", next)
	}
}
