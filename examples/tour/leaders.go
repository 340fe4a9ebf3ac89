package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/sessionlock"
)

// leaders lets two programs lead, keep a schedule and share places.
func leaders(s *stage) error {
	s.say("Of many processes one leads, one sends the report of each day, and at most two call an interface that bears no more:")
	s.code(`err := leases.Lead(ctx, key, 15*time.Second, follow)                              // campaigns, leads, campaigns again
err := leases.Every(ctx, key, lease.Daily(3, 30, berlin), report, lease.Tries(5)) // each tick is done once
err := leases.Do(ctx, key, 30*time.Second, pay, lease.Slots(2))                   // two at a time`)
	pool, err := s.db.DB()
	if err != nil {
		return err
	}
	if err := lease.Migrate(s.ctx, pool); err != nil {
		return err
	}
	one, err := lease.New(s.ctx, pool, lease.Owner(s.name+" one"))
	if err != nil {
		return err
	}
	defer func() { _ = one.Close(s.ctx) }() // its leases go with the tour
	two, err := lease.New(s.ctx, pool, lease.Owner(s.name+" two"))
	if err != nil {
		return err
	}
	defer func() { _ = two.Close(s.ctx) }()
	return errors.Join(s.leader(one, two), s.schedule(one, two), s.slots(one, two), s.tries())
}

// leader lets one program lead, and the other when that is gone.
func (s *stage) leader(one, two *lease.Manager) error {
	importer := s.key("importer")
	follows, ended := false, make(chan error, 1)
	err := one.Lead(s.ctx, importer, 10*time.Second, func(context.Context) error {
		go func() {
			ended <- two.Lead(s.ctx, importer, 10*time.Second, func(context.Context) error {
				follows = two.Leading(importer) && !one.Leading(importer)
				return nil
			})
		}()
		s.check(one.Leading(importer) && !two.Leading(importer), "of two programs one leads")
		return nil
	})
	err = errors.Join(err, <-ended)
	s.check(follows, "it ends, and the other leads")
	return err
}

// schedule runs ticks in two programs, and lets the first run of one fail.
func (s *stage) schedule(one, two *lease.Manager) error {
	const step, want = 100 * time.Millisecond, 5
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	runs := make(chan time.Time)
	report := s.key("report")
	ended := make(chan error, 2)
	for _, m := range []*lease.Manager{one, two} {
		go func() {
			ended <- m.Every(ctx, report, lease.Interval(step), func(ctx context.Context, tick time.Time) error {
				select {
				case runs <- tick:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}, lease.Missed(lease.RunAll))
		}()
	}
	last, even := <-runs, true
	for range want - 1 {
		tick := <-runs
		even = even && tick.Sub(last) == step
		last = tick
	}
	stop()
	if err := errors.Join(<-ended, <-ended); !errors.Is(err, context.Canceled) {
		return err
	}
	s.check(even, "both keep a schedule: %d ticks, %s apart, each run by one of them, once", want, step)
	view, err := inspect.Snapshot(s.ctx, s.outside)
	if err != nil {
		return err
	}
	for _, c := range view.Schedules {
		if c.Key == report.Name() {
			s.check(c.Failures == 0 && !c.Next.IsZero(), "gormlock ls shows it: %s, last run by %s", c.State(view.Taken), strings.TrimPrefix(c.Owner, s.name+" "))
			return nil
		}
	}
	return fmt.Errorf("no schedule %s in %+v", report, view.Schedules)
}

// slots takes two places of two, and asks for a third.
func (s *stage) slots(one, two *lease.Manager) error {
	api := s.key("payment interface")
	return one.Do(s.ctx, api, 10*time.Second, func(ctx context.Context) error {
		second, err := two.Acquire(ctx, api, 10*time.Second, lease.Slots(2))
		if err != nil {
			return err
		}
		err = two.Do(s.ctx, api, 10*time.Second, func(context.Context) error { return nil }, lease.Slots(2), lease.Try()) //gormlockvet:ignore outer ctx holds api already, which is a refusal of its own
		s.check(second.Slot() == 1 && errors.Is(err, lease.ErrNotAcquired), "two have a place, a third with lease.Try() is told: %v", err)
		return second.Release(ctx)
	}, lease.Slots(2))
}

// tries runs work if nobody is at it.
func (s *stage) tries() error {
	one, two, end, err := s.twoPrograms()
	if err != nil {
		return err
	}
	defer end()
	cache := s.key("cache")
	return one.Do(s.ctx, cache, func(ctx context.Context) error {
		ran := false
		err := two.Do(ctx, cache, func(context.Context) error { ran = true; return nil }, sessionlock.Try())
		s.check(!ran && errors.Is(err, sessionlock.ErrNotAcquired), "the same with a session's lock and sessionlock.Try(): it does not run")
		return nil
	})
}
