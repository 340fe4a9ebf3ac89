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
	name   string
	color  string
	points []point
}

// plot is a chart whose axes are both logarithmic.
type plot struct {
	title, x, y string
	series      []series
}

func sessionPlot(found measured) string {
	p := plot{title: "Session lock and release: how many a second", x: "goroutines", y: "a second", series: []series{
		{name: "gormlock, 1 connection", color: "#2563eb"}, {name: "a pool of 90 connections", color: "#d97706"},
	}}
	for _, n := range []float64{1, 8, 64, 1000} {
		for i, unit := range []string{"ours/s", "peer/s"} {
			if v, ok := found.of(fmt.Sprintf("SessionLock/goroutines=%.0f", n), unit); ok {
				p.series[i].points = append(p.series[i].points, point{n, v})
			}
		}
	}
	return p.svg()
}

func claimPlot(found measured) string {
	p := plot{title: "Claim 10 rows: µs, by how many are ready", x: "ready rows", y: "µs", series: []series{
		{name: "gormlock.Claim", color: "#2563eb"}, {name: "bare SQL", color: "#d97706"},
	}}
	for _, n := range []float64{10_000, 100_000, 1_000_000} {
		for i, unit := range []string{"claim-µs", "bare-µs"} {
			if v, ok := found.of(fmt.Sprintf("Claim10/ready=%.0f", n), unit); ok {
				p.series[i].points = append(p.series[i].points, point{n, v})
			}
		}
	}
	return p.svg()
}

const (
	width, height = 640.0, 340.0
	left, right   = 70.0, 20.0
	top, bottom   = 44.0, 56.0
)

// svg draws the plot; nothing where less than two points were measured.
func (p plot) svg() string {
	least, most := point{math.Inf(1), math.Inf(1)}, point{}
	for _, s := range p.series {
		if len(s.points) < 2 {
			return ""
		}
		for _, at := range s.points {
			least.x, least.y = min(least.x, at.x), min(least.y, at.y)
			most.x, most.y = max(most.x, at.x), max(most.y, at.y)
		}
	}
	least.y, most.y = math.Pow(10, math.Floor(math.Log10(least.y))), math.Pow(10, math.Ceil(math.Log10(most.y)))
	x := func(v float64) float64 {
		return left + (width-left-right)*math.Log(v/least.x)/math.Log(most.x/least.x)
	}
	y := func(v float64) float64 {
		return height - bottom - (height-top-bottom)*math.Log(v/least.y)/math.Log(most.y/least.y)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" font-family="system-ui, sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%.0f" height="%.0f" fill="#ffffff"/><text x="%.0f" y="24" font-size="15" fill="#111827">%s</text>`+"\n", width, height, left, p.title)
	for v := least.y; v <= most.y*1.01; v *= 10 {
		fmt.Fprintf(&b, `<line x1="%.0f" y1="%.1f" x2="%.0f" y2="%.1f" stroke="#e5e7eb"/><text x="%.0f" y="%.1f" text-anchor="end" fill="#6b7280">%s</text>`+"\n",
			left, y(v), width-right, y(v), left-8, y(v)+4, grouped(v))
	}
	for _, at := range p.series[0].points {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.0f" text-anchor="middle" fill="#6b7280">%s</text>`+"\n", x(at.x), height-bottom+18, grouped(at.x))
	}
	fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" text-anchor="middle" fill="#374151">%s</text>`+"\n", (left+width-right)/2, height-bottom+36, p.x)
	for i, s := range p.series {
		var line strings.Builder
		for _, at := range s.points {
			fmt.Fprintf(&line, "%.1f,%.1f ", x(at.x), y(at.y))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"><title>%s: %s %s</title></circle>`+"\n", x(at.x), y(at.y), s.color, s.name, grouped(math.Round(at.y)), p.y)
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.TrimSpace(line.String()), s.color)
		at := left + 8 + 210*float64(i)
		fmt.Fprintf(&b, `<rect x="%.0f" y="%.0f" width="12" height="12" fill="%s"/><text x="%.0f" y="%.0f" fill="#374151">%s</text>`+"\n", at, height-14, s.color, at+18, height-4, s.name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// grouped is a whole number for people: 1,000,000.
func grouped(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
