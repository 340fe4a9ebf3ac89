package lease

import (
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/pgtime"
)

// Schedule says when something is to be done. The schedules of github.com/robfig/cron fit as they are.
type Schedule interface {
	// Next returns the first tick after t, or the zero time when there is none. It depends on t alone: every process has to
	// come to the same answer. t is in UTC.
	Next(t time.Time) time.Time
}

// resolution is that of PostgreSQL's times.
const resolution = time.Microsecond

// Interval ticks every d, counted from the first start of its key: restarts do not shift it. An Interval of less than
// a microsecond is [ErrOption].
func Interval(d time.Duration) Schedule { return interval(d) }

type interval time.Duration

func (d interval) Next(t time.Time) time.Time { return t.Add(time.Duration(d)) }

func (d interval) check() error {
	if time.Duration(d) < resolution {
		return fmt.Errorf("%w: Interval(%s) is too short", ErrOption, time.Duration(d))
	}
	return nil
}

// last finds the last tick at once, without one call of Next for each tick.
func (d interval) last(after, now time.Time) time.Time {
	step := time.Duration(d).Truncate(resolution)
	if time.Duration(d) != step {
		step += resolution // as every tick is rounded
	}
	return after.Add(now.Sub(after).Truncate(step))
}

// Daily ticks at the given hour and minute by the clocks of location, once on every date. If the time does not
// exist on a date, it ticks when the clocks skip it; if it exists twice, the first time. An invalid hour or
// minute and a nil location are [ErrOption].
func Daily(hour, minute int, location *time.Location) Schedule { return daily{hour, minute, location} }

type daily struct {
	hour, minute int
	location     *time.Location
}

func (d daily) check() error {
	if d.location == nil {
		return fmt.Errorf("%w: Daily(%d, %d, nil), give it a location such as time.Local", ErrOption, d.hour, d.minute)
	}
	if d.hour < 0 || d.hour > 23 || d.minute < 0 || d.minute > 59 {
		return fmt.Errorf("%w: Daily(%d, %d, %v) is not a time of day", ErrOption, d.hour, d.minute, d.location)
	}
	return nil
}

func (d daily) Next(t time.Time) time.Time {
	local := t.In(d.location)
	for day := -1; ; day++ {
		date := time.Date(local.Year(), local.Month(), local.Day()+day, 0, 0, 0, 0, time.UTC)
		if tick, ok := d.on(date); ok && tick.After(t) {
			return tick.UTC()
		}
	}
}

// on returns the tick of a date, which is given in UTC. ok is false if the date does not exist in location.
func (d daily) on(date time.Time) (tick time.Time, ok bool) {
	wall := date.Add(time.Duration(d.hour)*time.Hour + time.Duration(d.minute)*time.Minute)
	tick = time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, d.location)
	from, until := tick.ZoneBounds()
	switch found := wallClock(tick); {
	case found.After(wall): // the time does not exist; Go used the offset before the gap
		tick = from
	case found.Before(wall): // here Go used the offset after the gap
		tick = until
	case !from.IsZero(): // it may exist twice: look before the clocks were set
		_, offset := from.Add(-1).Zone()
		if first := wall.Add(-time.Duration(offset) * time.Second); first.Before(from) {
			tick = first.In(d.location)
		}
	}
	// A jump from the last hour of a date leads into the next date. The tick belongs to the date that ends.
	return tick, sameDate(wallClock(tick), date) || sameDate(wallClock(tick.Add(-1)), date)
}

func sameDate(a, b time.Time) bool { return a.Year() == b.Year() && a.YearDay() == b.YearDay() }

// wallClock returns what a clock in location shows at t, as a time in UTC.
func wallClock(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// checkSchedule refuses a schedule that never ticks.
func checkSchedule(s Schedule) error {
	if s == nil {
		return fmt.Errorf("%w: Every with a nil schedule, give it one such as Interval(time.Hour)", ErrOption)
	}
	if known, ok := s.(interface{ check() error }); ok {
		return known.check()
	}
	return nil
}

// nextTick returns the first tick after t, rounded up to the resolution of the database. Without rounding, the next call
// would return the same tick again.
func nextTick(s Schedule, t time.Time) (time.Time, error) {
	t = t.UTC()
	next := s.Next(t)
	if next.IsZero() || !next.After(t) {
		return time.Time{}, fmt.Errorf("%w: the schedule has no time after %s", ErrOption, t.Format(time.RFC3339Nano))
	}
	if err := pgtime.Check(next); err != nil {
		return time.Time{}, fmt.Errorf("%w: the schedule's next time: %w", ErrOption, err)
	}
	next = next.UTC()
	if cut := next.Truncate(resolution); !cut.Equal(next) {
		next = cut.Add(resolution)
	}
	return next, nil
}

// lastTick returns the last tick that is not after now, given an earlier one. An error in the tick after it is only reported when that tick is due,
// because a schedule may end.
func lastTick(s Schedule, tick, now time.Time) time.Time {
	if d, ok := s.(interval); ok {
		return d.last(tick, now)
	}
	for {
		next, err := nextTick(s, tick)
		if err != nil || next.After(now) {
			return tick
		}
		tick = next
	}
}
