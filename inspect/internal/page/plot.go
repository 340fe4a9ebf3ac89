package page

import (
	"fmt"
	"strings"
	"time"
)

// The size of a plot, in the units of its viewBox.
const (
	plotWidth  = 300
	plotHeight = 56
)

// Kept is how much of the past the page shows.
const Kept = 15 * time.Minute

// plot is one line of the past as the page draws it.
type plot struct {
	Name, About string
	Now, Max    string
	Class       string
	Line, Area  string // paths; "" if there is nothing to draw yet
	From        string // the beginning of the plot
}

// drawPlots are the plots of the page.
func drawPlots(samples []Sample) []plot {
	if len(samples) == 0 {
		return nil
	}
	decimal := func(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") }
	seconds := func(v float64) string { return Span(time.Duration(v * float64(time.Second))) }
	waits := plotOf(samples, false, decimal, func(s Sample) float64 { return s.Begun })
	waits.Name, waits.About, waits.Class = "Waits per second", "requests that began to wait, and lasted until the page looked", "line-wait"
	longest := plotOf(samples, false, seconds, func(s Sample) float64 { return s.Longest.Seconds() })
	longest.Name, longest.About, longest.Class = "Longest wait", "of those that waited when the page looked", "line-longest"
	gone := plotOf(samples, true, decimal, func(s Sample) float64 { return float64(s.GaveUp) })
	total := 0
	for _, s := range samples {
		total += s.GaveUp
	}
	gone.Name, gone.About, gone.Class, gone.Now = "Timeouts", "requests that ended without the lock while it was still held: timeouts, cancels, ended sessions", "line-gone", fmt.Sprint(total)
	return []plot{waits, longest, gone}
}

// plotOf draws a line, with a break where nothing was seen, or bars.
func plotOf(samples []Sample, bars bool, text func(float64) string, value func(Sample) float64) plot {
	last := samples[len(samples)-1].Taken
	window := min(max(last.Sub(samples[0].Taken), 2*time.Minute), Kept)
	top := 0.0
	for _, s := range samples {
		top = max(top, value(s))
	}
	x := func(s Sample) float64 { return plotWidth * (1 - last.Sub(s.Taken).Seconds()/window.Seconds()) }
	y := func(s Sample) float64 { return plotHeight - 2 - (plotHeight-6)*value(s)/max(top, 1e-9) }
	p := plot{Now: text(value(samples[len(samples)-1])), Max: text(top), From: Span(window)}
	var line, area strings.Builder
	begun := -1.0
	for i, s := range samples {
		switch {
		case bars:
			if value(s) > 0 {
				fmt.Fprintf(&line, "M%.1f %dV%.1f", x(s), plotHeight-2, y(s))
			}
			continue
		case begun < 0:
			begun = x(s)
			fmt.Fprintf(&line, "M%.1f %.1f", x(s), y(s))
			fmt.Fprintf(&area, "M%.1f %dL%.1f %.1f", x(s), plotHeight, x(s), y(s))
		default:
			fmt.Fprintf(&line, "L%.1f %.1f", x(s), y(s))
			fmt.Fprintf(&area, "L%.1f %.1f", x(s), y(s))
		}
		if i+1 == len(samples) || samples[i+1].Gap {
			fmt.Fprintf(&area, "L%.1f %dZ", x(s), plotHeight)
			begun = -1
		}
	}
	p.Line, p.Area = line.String(), area.String()
	return p
}
