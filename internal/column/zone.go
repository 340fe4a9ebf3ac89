package column

import (
	"sync/atomic"
	"time"
)

// zone is that in which times are sent to a column, if the server compares them by what the clock shows and not by the instant.
type zone struct {
	matters, asks bool
	at            atomic.Pointer[time.Location] // nil: the driver was not asked yet
}

// AsksZone reports whether times are sent in the zone in which the driver reads them, and nobody has asked which one that is.
func (c *Version) AsksZone() bool { return c.zone.asks && c.zone.at.Load() == nil }

// SetZone says which zone the driver reads the times in.
func (c *Version) SetZone(in *time.Location) { c.zone.at.Store(in) }

// clock is an instant in the zone of the column: that of UTC, as drivers read times if nobody has told them otherwise.
func (c *Version) clock(t time.Time) time.Time {
	if !c.zone.matters || t.IsZero() {
		return t
	}
	if in := c.zone.at.Load(); in != nil {
		return t.In(in)
	}
	return t.UTC()
}

// Sent is the version as statements send it. What the clock of UTC shows, drivers send as it is: of another
// zone, some send the clock and some the instant.
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

// far is a time far from this one, by the clock if the column has nothing else: the server goes back by that.
func (c *Version) far(t time.Time) time.Time {
	if !c.zone.asks {
		return t.Add(c.FarInTime)
	}
	t = c.clock(t)
	return showing(showing(t, time.UTC).Add(c.FarInTime), t.Location())
}

// showing is the time at which the clocks of a zone show the same as those of t.
func showing(t time.Time, in *time.Location) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), in)
}

// SkippedAt is the name of the zone if its clocks skip times right before or after this one, and the column has none but those of its clock:
// what the column shows may be a time that they skip. The driver reads it as another one, by which no row is found. It is empty if not.
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

// longestSkip is longer than clocks are put forward in a night, but for those of islands that cross the date line.
const longestSkip = 3 * time.Hour

// offset is how far the clocks of a time's zone are ahead of UTC.
func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}
