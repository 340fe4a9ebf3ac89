package compat_test

import (
	"encoding/json"
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
			with.disorderly = true
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
					if o.preloads() {
						got.forgetTheOrderOfChildren()
						want.forgetTheOrderOfChildren()
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

var inList = regexp.MustCompile(`\bIN \(((?:[^()']|'[^']*')*)\)`)

// forgetTheOrderOfChildren forgets in which order rows came that belong to another, and so their keys in later statements.
func (o *outcome) forgetTheOrderOfChildren() {
	for i, told := range o.Told {
		o.Told[i] = withSortedChildren(told)
	}
	for _, texts := range slices.Concat(o.Statements, [][]string{o.Logged, o.Traced}) {
		for i, text := range texts {
			texts[i] = inList.ReplaceAllStringFunc(text, func(list string) string {
				keys := strings.Split(inList.FindStringSubmatch(list)[1], ",")
				slices.Sort(keys)
				return "IN (" + strings.Join(keys, ",") + ")"
			})
		}
	}
}

// withSortedChildren sorts, in the JSON of a value behind its type, the lists of objects that stand in objects.
func withSortedChildren(told string) string {
	kind, encoded, _ := strings.Cut(told, " ")
	var value any
	if json.Unmarshal([]byte(encoded), &value) != nil {
		return told // an error, a time
	}
	sorted, err := json.Marshal(sortChildren(value, false))
	if err != nil {
		panic(err) // it was JSON before
	}
	return kind + " " + string(sorted)
}

func sortChildren(value any, inObject bool) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			value[name] = sortChildren(value[name], true)
		}
	case []any:
		for i := range value {
			value[i] = sortChildren(value[i], false)
		}
		if _, objects := first(value).(map[string]any); objects && inObject {
			slices.SortFunc(value, func(a, b any) int { return strings.Compare(text(a), text(b)) })
		}
	}
	return value
}

func first(values []any) any {
	if len(values) == 0 {
		return nil
	}
	return values[0]
}

// What forgets the order of children forgets nothing else.
func TestForgetTheOrderOfChildren(t *testing.T) {
	t.Parallel()
	said := func(p person, logged string) outcome {
		o := outcome{Told: []string{text(p), text([]person{p, {ID: 1}})}, Logged: []string{logged}}
		o.forgetTheOrderOfChildren()
		return o
	}
	ada := person{ID: 2, Tags: []string{"b", "a"}, Pets: []pet{{ID: 3, Toys: []toy{{ID: 8}, {ID: 7}}}, {ID: 1}}}
	same := person{ID: 2, Tags: []string{"b", "a"}, Pets: []pet{{ID: 1}, {ID: 3, Toys: []toy{{ID: 7}, {ID: 8}}}}}
	log := "SELECT * FROM x WHERE id IN (%s) AND y IN ('a, b','c')"
	assertSame(t, said(ada, fmt.Sprintf(log, "3,1")), said(same, fmt.Sprintf(log, "1,3")))
	want := said(ada, fmt.Sprintf(log, "3,1"))
	for name, other := range map[string]outcome{
		"tags":       said(person{ID: 2, Tags: []string{"a", "b"}, Pets: ada.Pets}, want.Logged[0]),
		"one less":   said(person{ID: 2, Tags: ada.Tags, Pets: ada.Pets[:1]}, want.Logged[0]),
		"a grand":    said(person{ID: 2, Tags: ada.Tags, Pets: []pet{{ID: 3, Toys: []toy{{ID: 8}, {ID: 9}}}, {ID: 1}}}, want.Logged[0]),
		"other keys": said(ada, fmt.Sprintf(log, "3,2")),
	} {
		if reflect.DeepEqual(other, want) {
			t.Errorf("%s: the same", name)
		}
	}
	rows := outcome{Told: []string{text([]pet{{ID: 2}, {ID: 1}})}}
	rows.forgetTheOrderOfChildren()
	if !strings.Contains(rows.Told[0], `"ID":2,`) || strings.Index(rows.Told[0], `"ID":2,`) > strings.Index(rows.Told[0], `"ID":1,`) {
		t.Errorf("the order of the rows themselves is forgotten: %s", rows.Told[0])
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
