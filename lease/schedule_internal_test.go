package lease

import (
	"errors"
	"testing"
	"time"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	location, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return location
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return when.UTC()
}

// Daily ticks once on every date: on days of 23 and 25 hours, at times that do not exist or exist twice, with a gap at midnight, with a gap of half
// an hour, and with a whole date missing.
func TestDaily_onceOnEveryDate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		zone         string
		hour, minute int
		after        string
		ticks        []string
	}{
		"UTC":                         {"UTC", 3, 30, "2026-01-01T03:30:00Z", []string{"2026-01-02T03:30:00Z", "2026-01-03T03:30:00Z"}},
		"23 hours":                    {"Europe/Berlin", 3, 30, "2026-03-28T00:00:00Z", []string{"2026-03-28T02:30:00Z", "2026-03-29T01:30:00Z", "2026-03-30T01:30:00Z"}},
		"25 hours":                    {"Europe/Berlin", 3, 30, "2026-10-24T00:00:00Z", []string{"2026-10-24T01:30:00Z", "2026-10-25T02:30:00Z", "2026-10-26T02:30:00Z"}},
		"a time that does not exist":  {"Europe/Berlin", 2, 30, "2026-03-28T00:00:00Z", []string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		"a time that exists twice":    {"Europe/Berlin", 2, 30, "2026-10-24T00:00:00Z", []string{"2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"the start of the second":     {"Europe/Berlin", 2, 0, "2026-10-24T12:00:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-26T01:00:00Z"}},
		"the other side of the world": {"America/New_York", 2, 30, "2026-03-07T12:00:00Z", []string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}},
		"twice there":                 {"America/New_York", 1, 30, "2026-10-31T12:00:00Z", []string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		"midnight does not exist":     {"America/Sao_Paulo", 0, 30, "2018-11-03T00:00:00Z", []string{"2018-11-03T03:30:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:30:00Z"}},
		"midnight exists twice":       {"America/Sao_Paulo", 23, 30, "2018-02-17T00:00:00Z", []string{"2018-02-17T01:30:00Z", "2018-02-18T01:30:00Z", "2018-02-19T02:30:00Z"}},
		"half an hour":                {"Australia/Lord_Howe", 2, 15, "2026-10-02T12:00:00Z", []string{"2026-10-02T15:45:00Z", "2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		"the last hour is missing":    {"America/Nuuk", 23, 30, "2026-03-27T00:00:00Z", []string{"2026-03-27T01:30:00Z", "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		"its start is missing":        {"America/Scoresbysund", 23, 0, "2026-03-27T12:00:00Z", []string{"2026-03-28T01:00:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		"a date that is missing":      {"Pacific/Apia", 12, 0, "2011-12-29T00:00:00Z", []string{"2011-12-29T22:00:00Z", "2011-12-30T22:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Daily(c.hour, c.minute, zone(t, c.zone))
			when := at(t, c.after)
			for _, want := range c.ticks {
				next, err := nextTick(s, when)
				if err != nil || !next.Equal(at(t, want)) {
					t.Fatalf("after %s comes %s, %v, want %s", when, next, err, want)
				}
				when = next
			}
		})
	}
}

// Over a century, in every zone that sets its clocks, each date that exists has exactly one tick.
func TestDaily_noDateIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Tehran",
		"America/Havana", "Asia/Beirut", "Antarctica/Troll", "Pacific/Apia", "Europe/Dublin", "Asia/Amman",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			location := zone(t, name)
			for _, c := range [][2]int{{0, 0}, {0, 30}, {1, 30}, {2, 0}, {2, 30}, {23, 59}} {
				s := Daily(c[0], c[1], location)
				tick := s.Next(time.Date(1999, 12, 31, 12, 0, 0, 0, time.UTC))
				date := wallClock(tick.In(location)).Truncate(24 * time.Hour)
				for date.Year() < 2038 {
					tick = s.Next(tick)
					next := wallClock(tick.In(location)).Truncate(24 * time.Hour)
					if days := next.Sub(date) / (24 * time.Hour); days != 1 && (name != "Pacific/Apia" || days != 2) {
						t.Fatalf("%v: after %s comes %s", c, date, next)
					}
					date = next
				}
			}
		})
	}
}

// seconds is a foreign schedule: it rounds, and ends.
type seconds struct{ until time.Time }

func (s seconds) Next(t time.Time) time.Time {
	if next := t.Truncate(time.Second).Add(time.Second); next.Before(s.until) {
		return next
	}
	return time.Time{}
}

// finer is one whose ticks the database cannot store.
type finer struct{}

func (finer) Next(t time.Time) time.Time { return t.Add(10*time.Microsecond + time.Nanosecond) }

type stuck struct{}

func (stuck) Next(t time.Time) time.Time { return t }

func TestNextTick(t *testing.T) {
	t.Parallel()
	from := at(t, "2026-01-01T00:00:00.5Z")
	if next, err := nextTick(seconds{at(t, "2027-01-01T00:00:00Z")}, from); err != nil || !next.Equal(at(t, "2026-01-01T00:00:01Z")) {
		t.Errorf("got %s, %v", next, err)
	}
	if next, err := nextTick(finer{}, from); err != nil || !next.Equal(from.Add(11*time.Microsecond)) {
		t.Errorf("rounded to %s, %v", next, err)
	}
	for name, s := range map[string]Schedule{"an end": seconds{from}, "no progress": stuck{}} {
		if next, err := nextTick(s, from); !errors.Is(err, ErrOption) {
			t.Errorf("%s: %s, %v", name, next, err)
		}
	}
	for name, s := range map[string]Schedule{
		"nil": nil, "no interval": Interval(0), "a negative one": Interval(-time.Second), "too fine": Interval(time.Nanosecond),
		"25 o'clock": Daily(24, 0, time.UTC), "60 minutes": Daily(3, 60, time.UTC), "-1": Daily(-1, 0, time.UTC), "nowhere": Daily(3, 0, nil),
	} {
		if err := checkSchedule(s); !errors.Is(err, ErrOption) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLastTick_asOneByOne(t *testing.T) {
	t.Parallel()
	from := at(t, "2026-01-01T00:00:00Z")
	for _, d := range []time.Duration{time.Second, 7 * time.Second, 1500 * time.Nanosecond, time.Hour} {
		for _, later := range []time.Duration{0, d / 2, d, 10*d - 1, 10 * d, 10*d + 1} {
			now := from.Add(later)
			want := lastTick(foreign{Interval(d)}, from, now)
			if got := lastTick(Interval(d), from, now); !got.Equal(want) {
				t.Errorf("every %s, %s later: %s, want %s", d, later, got, want)
			}
		}
	}
}

type foreign struct{ Schedule }

func TestPlan(t *testing.T) {
	t.Parallel()
	start := at(t, "2026-01-01T00:00:00Z")
	hours := func(n float64) time.Time { return start.Add(time.Duration(n * float64(time.Hour))) }
	almost := func(t time.Time) time.Time { return t.Add(-resolution) }
	for name, c := range map[string]struct {
		missed  MissedPolicy
		p       progress
		awaited time.Time
		want    plan
	}{
		"not yet":                   {RunLast, progress{now: hours(0.5)}, time.Time{}, plan{at: hours(1), awaiting: hours(1)}},
		"due":                       {RunLast, progress{now: hours(1)}, time.Time{}, plan{tick: hours(1)}},
		"missed, the last":          {RunLast, progress{now: hours(3.5)}, time.Time{}, plan{tick: hours(3), settle: almost(hours(3))}},
		"missed, all":               {RunAll, progress{now: hours(3.5)}, time.Time{}, plan{tick: hours(1)}},
		"missed, none":              {Skip, progress{now: hours(3.5)}, time.Time{}, plan{at: hours(4), awaiting: hours(4)}},
		"on time":                   {Skip, progress{now: hours(1).Add(time.Second)}, hours(1), plan{tick: hours(1)}},
		"waited for, but not by us": {Skip, progress{now: hours(1).Add(time.Second)}, time.Time{}, plan{at: hours(2), awaiting: hours(2)}},
		"waited for, and stopped":   {Skip, progress{now: hours(1.5)}, hours(1), plan{at: hours(2), awaiting: hours(2)}},
		"waited for an earlier one": {Skip, progress{now: hours(2)}, hours(1), plan{at: hours(3), awaiting: hours(3)}},
		"begun and died":            {Skip, progress{now: hours(5), tick: hours(1), attempts: 1}, time.Time{}, plan{tick: hours(1)}},
		"failed, and pausing":       {Skip, progress{now: hours(5), tick: hours(1), attempts: 1, retryAt: hours(6)}, time.Time{}, plan{at: hours(6)}},
		"failed, and paused":        {RunLast, progress{now: hours(5), tick: hours(1), attempts: 2, retryAt: hours(4)}, time.Time{}, plan{tick: hours(1)}},
		"died as often as it may":   {RunAll, progress{now: hours(5), tick: hours(1), attempts: 3}, time.Time{}, plan{tick: hours(1), giveUp: true}},
		"the clock was set back":    {RunLast, progress{now: hours(-5)}, time.Time{}, plan{at: hours(1), awaiting: hours(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.p.settled = start
			e := &every{terms: &terms{missed: c.missed, tries: 3, ttl: 15 * time.Second}, schedule: Interval(time.Hour)}
			if got, err := e.plan(&c.p, c.awaited); err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

// counted says how often it was asked.
type counted struct {
	Schedule
	asked *int
}

func (c counted) Next(t time.Time) time.Time {
	*c.asked++
	return c.Schedule.Next(t)
}

// A range that was searched is not searched again. Otherwise a schedule of seconds that missed a month would be late for each tick, and skip it.
func TestPlan_searchesOnce(t *testing.T) {
	t.Parallel()
	asked := 0
	e := &every{terms: &terms{missed: Skip, tries: 3, ttl: 15 * time.Second}, schedule: counted{Interval(time.Second), &asked}}
	start := at(t, "2026-01-01T00:00:00Z")
	p := &progress{settled: start, now: start.Add(1_000_000 * time.Second)}
	next, err := e.plan(p, time.Time{})
	if err != nil || !next.at.Equal(p.now.Add(time.Second)) {
		t.Fatalf("%+v, %v", next, err)
	}
	asked, p.now = 0, next.at
	onTime, err := e.plan(p, next.awaiting)
	if err != nil || !onTime.tick.Equal(next.at) || asked > 5 {
		t.Errorf("asked %d times: %+v, %v", asked, onTime, err)
	}
	p.now = start.Add(10 * time.Second) // the clock was set back
	if back, err := e.plan(p, time.Time{}); err != nil || !back.at.Equal(start.Add(11*time.Second)) {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestStorable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a\x00b": "a\uFFFDb", "a\xffb": "a\uFFFDb", "ok": "ok"} {
		if got := storable(text); got != want {
			t.Errorf("%q is stored as %q", text, got)
		}
	}
}
