package compat_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gormlock/gormlock"
)

// TestGORMIsAsWithout: what a program does without gormlock it does the same way with the plugin installed: the same
// results, errors, log, spans, rows, statements on the wire, round trips and sessions.
func TestGORMIsAsWithout(t *testing.T) {
	t.Parallel()
	for _, c := range setups() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			without, with := open(t, c, nil), open(t, c, gormlock.New(c.plugin...))
			trips, tripsWithout := 0, 0
			for _, o := range operations(c) {
				t.Run(o.name, func(t *testing.T) {
					want, got := without.perform(t, o, c.simple), with.perform(t, o, c.simple)
					trips, tripsWithout = trips+sum(got.RoundTrips), tripsWithout+sum(want.RoundTrips)
					if c.prepares || o.prepares() {
						got.leaveOutThePreparing(c.simple || o.isRefused())
						want.leaveOutThePreparing(c.simple || o.isRefused())
					}
					if o.migrates() {
						got.sort()
						want.sort()
					}
					assertSame(t, got, want)
				})
			}
			if trips > tripsWithout {
				t.Errorf("%d round trips with the plugin, %d without", trips, tripsWithout)
			}
			for _, o := range ends {
				t.Run(o.name, func(t *testing.T) {
					want, got := without.perform(t, o, c.simple), with.perform(t, o, c.simple)
					if !slices.Equal(got.Told, want.Told) || !slices.Equal(got.Tables, want.Tables) {
						t.Errorf("with the plugin %q\n%s\nwithout %q\n%s", got.Told, got.Tables, want.Told, want.Tables)
					}
				})
			}
		})
	}
}

// operations are all that are compared in all they do. Those that prepare come last, as later ones profit from it.
func operations(c setup) []operation {
	all := slices.Concat(creates, reads, writes, associations, transactions, statements)
	switch {
	case c.prepares: // in a transaction GORM runs what it prepared before the table was altered, and fails without the plugin
		all = append(all, migrations[:2]...)
	case c.beside == nil && c.pool == nil:
		all = append(all, migrations...)
	}
	slices.SortStableFunc(all, func(a, b operation) int {
		switch {
		case a.prepares() == b.prepares():
			return 0
		case b.prepares():
			return -1
		}
		return 1
	})
	return all
}

func sum(all []int) int {
	n := 0
	for _, i := range all {
		n += i
	}
	return n
}

// leaveOutThePreparing forgets what differs when statements are prepared by hand: each costs a round trip more, and
// where their texts are others on the wire, as with the simple protocol, those.
func (o *outcome) leaveOutThePreparing(texts bool) {
	o.RoundTrips = nil
	if texts {
		o.Statements = nil
	}
}

// sort forgets the order of statements.
func (o *outcome) sort() {
	slices.Sort(o.Logged)
	slices.Sort(o.Traced)
	for _, wire := range o.Statements {
		slices.Sort(wire)
	}
}

// assertSame compares two outcomes, but for the names that GORM makes up for savepoints.
func assertSame(t *testing.T, got, want outcome) {
	t.Helper()
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		with, without := lines(g.Field(i).Interface()), lines(w.Field(i).Interface())
		at := 0
		for at < len(with) && at < len(without) && with[at] == without[at] {
			at++
		}
		if at < max(len(with), len(without)) {
			t.Errorf("%s, from line %d on, with the plugin\n\t%s\nwithout\n\t%s", g.Type().Field(i).Name, at,
				strings.Join(with[at:min(at+3, len(with))], "\n\t"), strings.Join(without[at:min(at+3, len(without))], "\n\t"))
		}
	}
}

var savepointName = regexp.MustCompile(`\bsp\d{10,}\b`)

func lines(of any) []string {
	var all []string
	switch of := of.(type) {
	case []string:
		all = of
	case [][]string:
		for i, wire := range of {
			all = append(append(all, fmt.Sprint("wire ", i)), wire...)
		}
	default:
		all = []string{fmt.Sprint(of)}
	}
	for i, line := range all {
		all[i] = savepointName.ReplaceAllString(line, "sp")
	}
	return all
}
