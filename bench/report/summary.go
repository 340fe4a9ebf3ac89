package main

import (
	"fmt"
	"math"
	"strings"
)

// plots are the pictures at the beginning of the page.
var plots = []struct {
	file, about string
	draw        func(measured) string
}{
	{"bench-cost.svg", "What gormlock costs beside the same without it", costPlot},
	{"bench-session.svg", "Session locks by goroutines", sessionPlot},
	{"bench-growth.svg", "The rate as the work grows", growthPlot},
}

// summary returns sentences about the run, which are true of any run. It leaves out sentences whose values were not measured.
func summary(found measured) []string {
	var all []string
	say := func(text string, of ...[2]string) {
		values := make([]any, len(of))
		for i, id := range of {
			r := rowOf(id[0], id[1])
			value, _, _, ok := r.verdict(found)
			if !ok {
				return
			}
			values[i] = value
		}
		all = append(all, fmt.Sprintf(text, values...))
	}
	say("An update with a version takes %s of one without, and makes %s.",
		[2]string{"VersionedUpdatePlain", "ratio"}, [2]string{"RoundTrips", "version"})
	say("A lock and an update by `Transaction` run at %s of the same by hand in GORM, and at %s if the server is 0.5 ms away.",
		[2]string{"Locked/Transaction/goroutines=1", "ratio"}, [2]string{"Locked/Transaction/goroutines=1/network", "ratio"})
	say("Session locks on one connection run at %s of go-pglock on a pool of 90 with 1,000 goroutines, and at %s with one.",
		[2]string{"SessionLock/goroutines=1000", "ratio"}, [2]string{"SessionLock/goroutines=1", "ratio"})
	say("A claim of 10 jobs takes %s of bare SQL, and with 10 million jobs that are ready %s that it takes with 10 thousand.",
		[2]string{"Claim10/ready=1000000", "x-bare"}, [2]string{"ClaimGrowth", "ready=10000000-x-small"})
	if text := targets(found); text != "" {
		all = append(all, text)
	}
	return all
}

// targets says how many rows meet their targets, and which row is furthest from its target.
func targets(found measured) string {
	with, met := 0, 0
	var furthest row
	worst, above := 1.0, ""
	for _, r := range rows {
		if rest, same := strings.CutPrefix(r.what, "the same"); same {
			r.what = above + rest
		} else {
			above = r.what
		}
		_, target, yes, ok := r.verdict(found)
		if !ok || target == "" {
			continue
		}
		with++
		if yes == "yes" {
			met++
			continue
		}
		if by := r.missedBy(found); by > worst {
			worst, furthest = by, r
		}
	}
	switch {
	case with == 0:
		return ""
	case met == with:
		return fmt.Sprintf("All %d rows with a target meet it.", with)
	}
	text := fmt.Sprintf("%d of the %d rows with a target meet it", met, with)
	if furthest.what == "" {
		return text + "."
	}
	value, target, _, _ := furthest.verdict(found)
	return fmt.Sprintf("%s; the furthest from it is “%s”: %s, target %s.", text, furthest.full(), value, target)
}

// missedBy is the factor by which a value misses its target.
func (r row) missedBy(found measured) float64 {
	v, _ := found.of(r.benchmark, r.unit)
	switch {
	case r.least > 0:
		return r.least / v
	case r.most > 0:
		return v / r.most
	}
	return math.Inf(1)
}

// full is the description of a row, with what it is compared with.
func (r row) full() string {
	if r.beside == "" {
		return r.what
	}
	return r.what + ", beside " + r.beside
}
