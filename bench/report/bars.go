package main

import (
	"fmt"
	"strings"
)

// costs are the rows of the first plot.
var costs = []struct{ label, benchmark, unit string }{
	{"create a row, plugin installed and not used", "Unused", "create"},
	{"update with a version", "VersionedUpdatePlain", "ratio"},
	{"lock and update by Transaction", "Locked/Transaction/goroutines=1", "ratio"},
	{"the same by 8 goroutines", "Locked/Transaction/goroutines=8", "ratio"},
	{"the same by 8, server 0.5 ms away", "Locked/Transaction/goroutines=8/network", "ratio"},
	{"LockRow and update of one hot row, 8 goroutines", "HotRow", "ratio"},
	{"session lock and release", "SessionLock/goroutines=1", "ratio"},
	{"the same by 8 goroutines", "SessionLock/goroutines=8", "ratio"},
	{"lease and release, server syncs to disk", "Lease/peer=sql/goroutines=1/durable", "ratio"},
	{"Claim 10 of 1,000,000 jobs", "Claim10/ready=1000000", "x-bare"},
	{"work.Enqueue", "WorkEnqueue", "ratio"},
}

// cost is one bar. The same work by hand is 1.
type cost struct {
	label           string
	time            float64
	first, third    float64 // quartiles, 0 if there are none
	bound           float64 // the target, 0 if there is none
	met             bool
	measured, aside string
}

func costsOf(found measured) []cost {
	var all []cost
	for _, c := range costs {
		r := rowOf(c.benchmark, c.unit)
		value, _, met, ok := r.verdict(found)
		if !ok {
			continue
		}
		time, _ := found.of(c.benchmark, c.unit)
		first, _ := found.of(c.benchmark, c.unit+"-q1")
		third, _ := found.of(c.benchmark, c.unit+"-q3")
		bar := cost{label: c.label, time: time, first: first, third: third, bound: r.most, met: met != "no", measured: value, aside: r.beside}
		if strings.HasSuffix(r.format, "× the rate") {
			bar.time, bar.bound = 1/time, r.least
			if bar.bound > 0 {
				bar.bound = 1 / bar.bound
			}
			if first > 0 {
				bar.first, bar.third = 1/third, 1/first
			}
		}
		all = append(all, bar)
	}
	return all
}

// rowOf is the row of a value.
func rowOf(benchmark, unit string) row {
	for _, r := range rows {
		if r.benchmark == benchmark && r.unit == unit {
			return r
		}
	}
	panic("no row has " + benchmark + " " + unit)
}

// costPlot draws what gormlock costs compared with the same by hand, or nothing if less than two were measured.
func costPlot(found measured) string {
	all := costsOf(found)
	if len(all) < 2 {
		return ""
	}
	const (
		labels, right  = 345.0, 66.0
		top, step, bar = 76.0, 27.0, 16.0
	)
	most := 1.5
	for _, c := range all {
		most = max(most, c.time, c.third)
	}
	bottom := top + step*float64(len(all))
	d := newDrawing(780, bottom+62, "What it costs: the time beside the same without gormlock", "One goroutine where none are named. Less is faster, 1 is the same.")
	x := func(v float64) float64 { return labels + (d.width-labels-right)*v/most }
	for v := 0.0; v <= most; v += 0.5 {
		class := "grid"
		if v == 1 {
			class = "axis"
		}
		d.line(class, x(v), top-6, x(v), bottom)
		d.text(x(v), bottom+17, "middle", "faint", fmt.Sprintf("%.1f ×", v))
	}
	for i, c := range all {
		y := top + step*float64(i)
		class := "a"
		switch {
		case c.bound == 0:
			class = "d"
		case !c.met:
			class = "b"
		}
		d.text(labels-10, y+13, "end", "text", c.label)
		d.bar(class, x(0), y, x(c.time)-x(0), bar, fmt.Sprintf("%s: %s, beside %s", c.label, c.measured, c.aside))
		if c.first > 0 {
			d.line("whisker", x(c.first), y+bar/2, x(c.third), y+bar/2)
			d.line("whisker", x(c.first), y+4, x(c.first), y+bar-4)
			d.line("whisker", x(c.third), y+4, x(c.third), y+bar-4)
		}
		if c.bound > 0 {
			d.line("target", x(c.bound), y-3, x(c.bound), y+bar+3)
		}
		d.text(x(max(c.time, c.third, c.bound))+8, y+13, "start", "faint", fmt.Sprintf("%.2f", c.time))
	}
	d.legend(20, bottom+44, [2]string{"a", "meets its target"}, [2]string{"b", "misses it"}, [2]string{"d", "has none"})
	d.line("target", 398, bottom+32, 398, bottom+47)
	d.text(407, bottom+44, "start", "text", "target")
	d.text(d.width-20, bottom+44, "end", "faint", "whiskers: the middle half of the rounds")
	return d.svg()
}
