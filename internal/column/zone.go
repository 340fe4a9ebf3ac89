package column

import (
	"sync/atomic"
	"time"
)

// zone is the time zone in which times are sent to a column, if the server compares what a clock shows and not the instant.
type zone struct {
	matters, asks bool
	at            atomic.Pointer[time.Location] // nil: the driver was not asked yet
}

// AsksZone reports whether times must be sent in the zone in which the driver reads them, and that zone is not known yet.
func (c *Version) AsksZone() bool { return c.zone.asks && c.zone.at.Load() == nil }

// SetZone sets the zone in which the driver reads the times.
func (c *Version) SetZone(in *time.Location) { c.zone.at.Store(in) }

// clock is t in the zone of the column. Until SetZone that is UTC, in which drivers read times by default.
func (c *Version) clock(t time.Time) time.Time {
	if !c.zone.matters || t.IsZero() {
		return t
	}
	if in := c.zone.at.Load(); in != nil {
		return t.In(in)
	}
	return t.UTC()
}

// Sent is the version as statements send it. Drivers agree only about times in UTC: for another zone, some send what its
// clock shows, and some the instant. So a time of another zone is sent as a UTC time that shows the same.
func (c *Version) Sent(v Value) any {
	if !c.IsTemporal() || v.Null {
		return c.Any(v)
	}
	t := c.clock(v.Time())
	if c.zone.asks {
		return showing(t, time.UTC)
	}
	return t
}

// far is a time far from this one. In a column without a zone it is as far by the clock, because the server subtracts by the clock.
func (c *Version) far(t time.Time) time.Time {
	if !c.zone.asks {
		return t.Add(c.FarInTime)
	}
	t = c.clock(t)
	return showing(showing(t, time.UTC).Add(c.FarInTime), t.Location())
}

// showing is the time at which clocks in the zone show what t's clock shows.
func showing(t time.Time, in *time.Location) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), in)
}

// SkippedAt is the name of the zone if its clocks skip times right before or after v, and the column holds what a clock shows; otherwise it is
// empty. Such a column may hold a time that the clocks skip. The driver reads that as another time, which finds no row.
func (c *Version) SkippedAt(v Value) string {
	if !c.IsTemporal() || v.Null || !c.zone.asks {
		return ""
	}
	at := c.clock(v.Time())
	skipped := offset(at.Add(longestSkip)) - offset(at.Add(-longestSkip))
	if skipped > 0 && (offset(at.Add(-skipped)) < offset(at) || offset(at.Add(skipped)) > offset(at)) {
		return at.Location().String()
	}
	return ""
}

// longestSkip is longer than clocks are ever put forward at once, except when a country crosses the date line.
const longestSkip = 3 * time.Hour

// offset is how far the clocks of a time's zone are ahead of UTC.
func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}
