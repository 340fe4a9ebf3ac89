package main

import (
	"fmt"
	"math"
	"strings"
)

// grows is a row of docs/scale.md: how often something is done per second at the smallest size, and the ratios at larger sizes.
type grows struct {
	what, benchmark string
	name            string // of its units: name=1/s, name=8-x
	sizes           []float64
}

var byClients = []grows{
	{"update", "Scale/update", "clients", []float64{1, 8, 64}},
	{"versioned update", "Scale/versioned", "clients", []float64{1, 8, 64}},
	{"an update with a lock each", "Scale/xactlock", "clients", []float64{1, 8, 64}},
	{"an update, all under one key", "Scale/hotkey", "clients", []float64{1, 8, 64}},
	{"one row read and updated, all the same one", "Scale/hotrow", "clients", []float64{1, 8, 64}},
}

var bySize = []grows{
	{"versioned rows saved, by the rows in one `Save`", "Scale/rows", "rows", []float64{1, 10, 100, 1000, 10_000}},
	{"claims of 10 jobs by one connection, by the jobs that are ready", "ClaimGrowth", "ready", []float64{10_000, 1_000_000, 10_000_000}},
	{"leases taken and given back by 8 goroutines, by the other leases", "Scale/leases", "others", []float64{1, 1000, 10_000, 100_000}},
	{"session locks taken and given back by 8 goroutines, by those that the manager holds", "Scale/sessionlocks", "held", []float64{1, 100, 1000, 5000, 10_000}},
}

// rates are the rate at the smallest size, and the ratios at larger ones. ok is false if one of them was not measured.
func (g grows) rates(found measured) (first float64, more []float64, ok bool) {
	unit := func(n float64, kind string) string { return fmt.Sprintf("%s=%.0f%s", g.name, n, kind) }
	if first, ok = found.of(g.benchmark, unit(g.sizes[0], "/s")); !ok {
		return 0, nil, false
	}
	for _, n := range g.sizes[1:] {
		ratio, ok := found.of(g.benchmark, unit(n, "-x"))
		if !ok {
			return 0, nil, false
		}
		more = append(more, ratio)
	}
	return first, more, true
}

// growth returns the tables of docs/scale.md, or "" if a value is missing.
func growth(found measured) string {
	clients := [][]string{{"In a second", "1 client", "8 clients", "64 clients"}}
	for _, g := range byClients {
		first, more, ok := g.rates(found)
		if !ok {
			return ""
		}
		clients = append(clients, []string{g.what, rounded(first), times(more[0]), times(more[1])})
	}
	sizes := [][]string{{"In a second", "the smallest", "and as it grows"}}
	for _, g := range bySize {
		first, more, ok := g.rates(found)
		if !ok {
			return ""
		}
		var each []string
		for i, ratio := range more {
			each = append(each, grouped(g.sizes[i+1])+": "+times(ratio))
		}
		sizes = append(sizes, []string{g.what, grouped(g.sizes[0]) + ": " + rounded(first), strings.Join(each, ", ")})
	}
	return fmt.Sprintf("`make bench` measured this on %s. Each figure is the median of 21 measurements and more, with the sizes measured in turns.\n\n%s\n%s",
		machine(), markdown(clients), markdown(sizes))
}

// times is a ratio with one decimal, or with none from ten on.
func times(ratio float64) string {
	if ratio >= 10 {
		return fmt.Sprintf("%.0f ×", ratio)
	}
	return fmt.Sprintf("%.1f ×", ratio)
}

// rounded is a rate to two digits.
func rounded(rate float64) string {
	unit := math.Pow(10, math.Floor(math.Log10(max(rate, 1)))-1)
	return grouped(math.Round(rate/unit) * unit)
}
