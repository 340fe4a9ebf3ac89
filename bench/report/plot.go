package main

import (
	"fmt"
	"math"
	"strings"
)

// point is one measurement.
type point struct{ x, y float64 }

// series is a line of a plot.
type series struct {
	name, class string // of the colors
	points      []point
}

// plot is a chart of lines whose x axis is logarithmic.
type plot struct {
	title, below, x string
	logarithmic     bool // its y axis is, too
	value           func(y float64) string
	series          []series
}

func sessionPlot(found measured) string {
	p := plot{
		title: "Session locks: acquired and released in a second", x: "goroutines", logarithmic: true,
		below: "Both on one server, in turns. Each goroutine has a key of its own.",
		value: func(y float64) string { return grouped(math.Round(y)) },
		series: []series{
			{name: "gormlock, 1 connection", class: "a"}, {name: "go-pglock, a pool of 90 connections", class: "b"},
		},
	}
	for _, n := range []float64{1, 8, 64, 1000} {
		for i, unit := range []string{"ours/s", "peer/s"} {
			if v, ok := found.of(fmt.Sprintf("SessionLock/goroutines=%.0f", n), unit); ok {
				p.series[i].points = append(p.series[i].points, point{n, v})
			}
		}
	}
	return p.svg()
}

func growthPlot(found measured) string {
	p := plot{
		title: "As the work grows: the rate beside that of the smallest", x: "ready jobs; leases in the table; locks that one manager holds",
		below: "1 is as fast as with the fewest.",
		value: func(y float64) string { return fmt.Sprintf("%.2f ×", y) },
		series: []series{
			{name: "Claim, by ready jobs", class: "a", points: []point{{10_000, 1}}},
			{name: "lease and release, by leases", class: "c", points: []point{{1, 1}}},
			{name: "session lock and release, by locks held", class: "b", points: []point{{1, 1}}},
		},
	}
	add := func(i int, n float64, benchmark, unit string) {
		v, ok := found.of(benchmark, fmt.Sprintf(unit, n))
		if !ok {
			return
		}
		if i == 0 { // the unit is a time
			v = 1 / v
		}
		p.series[i].points = append(p.series[i].points, point{n, v})
	}
	for _, n := range []float64{1_000_000, 10_000_000} {
		add(0, n, "ClaimGrowth", "ready=%.0f-x-small")
	}
	for _, n := range []float64{1000, 10_000, 100_000} {
		add(1, n, "Scale/leases", "others=%.0f-x")
	}
	for _, n := range []float64{100, 1000, 5000, 10_000} {
		add(2, n, "Scale/sessionlocks", "held=%.0f-x")
	}
	return p.svg()
}

// bounds are the least and the greatest values of a plot. ok is false if a series has less than two points.
func (p plot) bounds() (least, most point, ok bool) {
	least = point{math.Inf(1), math.Inf(1)}
	for _, s := range p.series {
		if len(s.points) < 2 {
			return least, most, false
		}
		for _, at := range s.points {
			least.x, least.y = min(least.x, at.x), min(least.y, at.y)
			most.x, most.y = max(most.x, at.x), max(most.y, at.y)
		}
	}
	if p.logarithmic {
		least.y, most.y = math.Pow(10, math.Floor(math.Log10(least.y))), math.Pow(10, math.Ceil(math.Log10(most.y)))
	} else {
		least.y, most.y = 0, math.Ceil(most.y*4+0.2)/4
	}
	return least, most, true
}

// svg draws the plot, or nothing if a series has less than two points.
func (p plot) svg() string {
	least, most, ok := p.bounds()
	if !ok {
		return ""
	}
	const left, right, top, bottom = 84.0, 92.0, 80.0, 300.0
	d := newDrawing(780, 378, p.title, p.below)
	x := func(v float64) float64 {
		return left + (d.width-left-right)*math.Log(v/least.x)/math.Log(most.x/least.x)
	}
	y := func(v float64) float64 {
		if p.logarithmic {
			return bottom - (bottom-top)*math.Log(v/least.y)/math.Log(most.y/least.y)
		}
		return bottom - (bottom-top)*(v-least.y)/(most.y-least.y)
	}
	for v := least.y; v <= most.y*1.01; {
		d.line("grid", left, y(v), d.width-right, y(v))
		d.text(left-10, y(v)+4, "end", "faint", p.value(v))
		if p.logarithmic {
			v *= 10
		} else {
			v += 0.25
		}
	}
	for v := math.Pow(10, math.Ceil(math.Log10(least.x))); v <= most.x*1.01; v *= 10 {
		d.line("axis", x(v), bottom, x(v), bottom+5)
		d.text(x(v), bottom+20, "middle", "faint", grouped(v))
	}
	d.line("axis", left, bottom, d.width-right, bottom)
	d.text((left+d.width-right)/2, bottom+40, "middle", "text", p.x)
	var names [][2]string
	for _, s := range p.series {
		names = append(names, [2]string{s.class, s.name})
		var line strings.Builder
		for _, at := range s.points {
			fmt.Fprintf(&line, "%.1f,%.1f ", x(at.x), y(at.y))
		}
		d.put(`<polyline class="l%s" points="%s"/>`+"\n", s.class, strings.TrimSpace(line.String()))
		for _, at := range s.points {
			d.dot(s.class, x(at.x), y(at.y), fmt.Sprintf("%s: %s at %s", s.name, p.value(at.y), grouped(at.x)))
		}
		last := s.points[len(s.points)-1]
		d.text(x(last.x)+10, y(last.y)+4, "start", "text", p.value(last.y))
	}
	d.legend(20, bottom+66, names...)
	return d.svg()
}
