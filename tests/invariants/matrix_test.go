package invariants

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	update = flag.Bool("update", false, "write testdata/known.txt anew: look at the difference")
	chosen = flag.String("forms", "", "a part of the names of the forms to run: what is known is not looked at then")
	broken = flag.String("broken", "", "a file for each promise that a cell breaks, one a line")
)

const samples = 300 // cells at random beside the base, where no time is given

// TestMatrix runs the cells of the base, and samples. A cell that breaks a promise must be in testdata/known.txt under
// its class, and a cell that stands there must break one.
func TestMatrix(t *testing.T) {
	t.Parallel()
	known := readKnown(t)
	found := newKnown()
	seen := &tally{}
	run(t, thinned(chosenOf(base(), parts.cell)), func(c *cell) {
		seen.count(c)
		for _, rule := range c.rules() {
			class := c.classOf(rule)
			found.add(class, c.name())
			if class == "" || !*update && !known.has(class, c.name()) {
				seen.complain(t, c, rule, class)
			}
		}
	})
	seen.list(t)
	if t.Failed() || raced || *chosen != "" {
		t.Logf("%v", seen)
		return
	}
	if *update {
		found.writeTo(t, knownFile)
		return
	}
	known.mustAllBeIn(t, found)
	for _, class := range classes {
		if len(known.cells[class.name]) == 0 {
			t.Errorf("no cell is of the class %q: delete it", class.name)
		}
	}
	t.Logf("%v", seen)
}

// chosenOf are the cells of the forms that -forms names.
func chosenOf[T any](all []T, cellOf func(T) *cell) []T {
	return slices.DeleteFunc(all, func(one T) bool { return !strings.Contains(cellOf(one).form.name, *chosen) })
}

// thinned are the cells that run.
func thinned[T any](all []T) []T {
	if !raced {
		return all
	}
	var some []T
	for i := 0; i < len(all); i += 8 {
		some = append(some, all[i])
	}
	return some
}

// TestSamples runs cells at random: a failing one must be of a class that is known.
func TestSamples(t *testing.T) {
	t.Parallel()
	known := readKnown(t)
	seed, until := seedOf(t), untilOf(t)
	seen := &tally{}
	r := rand.New(rand.NewPCG(seed, 0))
	for round := 0; round == 0 || time.Now().Before(until) && !t.Failed(); round++ {
		var sampled []parts
		for range samples {
			if p, ok := drawn(r, nil); ok {
				sampled = append(sampled, p)
			}
		}
		run(t, sampled, func(c *cell) {
			seen.count(c)
			for _, rule := range c.rules() {
				if class := c.classOf(rule); class == "" || len(known.cells[class]) == 0 {
					seen.complain(t, c, rule, class)
				}
			}
		})
	}
	t.Logf("seed %d: %v", seed, seen)
}

// run runs cells on several worlds, and hands each over when it has ended.
func run(t *testing.T, all []parts, ended func(c *cell)) {
	t.Helper()
	var mu sync.Mutex
	onWorlds(t, all, func(w *world, t testing.TB, p parts) {
		t.Helper()
		c := p.cell()
		c.w = w
		c.run(t)
		mu.Lock()
		defer mu.Unlock()
		ended(c)
	})
}

// onWorlds does what is to be done, each on one of several worlds.
func onWorlds[T any](t *testing.T, all []T, do func(w *world, t testing.TB, one T)) {
	t.Helper()
	jobs := make(chan T, len(all))
	for _, one := range all {
		jobs <- one
	}
	close(jobs)
	t.Run("cells", func(t *testing.T) {
		for i := range 3 {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				w := newWorldIn(t)
				for one := range jobs {
					do(w, t, one)
				}
			})
		}
	})
}

// seedOf is the same in every run that is not a long one.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("GORMLOCK_SEED")
	switch {
	case text != "":
	case untilOf(t).IsZero():
		return 1
	default:
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	must(t, err)
	return seed
}

func untilOf(t *testing.T) time.Time {
	t.Helper()
	text := os.Getenv("GORMLOCK_INVARIANTS")
	if text == "" {
		return time.Time{}
	}
	d, err := time.ParseDuration(text)
	must(t, err)
	return time.Now().Add(d)
}

// tally counts, and tells of each kind of failure once.
type tally struct {
	cells, failed int
	told          map[string]int
	lines         []string
}

// list writes what was found to the file of -broken, if there is one.
func (s *tally) list(t *testing.T) {
	t.Helper()
	if *broken != "" {
		slices.Sort(s.lines)
		must(t, os.WriteFile(*broken, []byte(strings.Join(s.lines, "\n")+"\n"), 0o600))
	}
}

func (s *tally) count(c *cell) {
	s.cells++
	for _, v := range c.found {
		s.lines = append(s.lines, strings.ReplaceAll(fmt.Sprintf("%s | %s | %s | %.300s", v.rule, c.classOf(v.rule), c.name(), v.what), "\n", " "))
	}
	if len(c.found) > 0 {
		s.failed++
	}
}

func (s *tally) complain(t *testing.T, c *cell, rule, class string) {
	t.Helper()
	if s.told == nil {
		s.told = map[string]int{}
	}
	key := rule + "/" + class + "/" + c.form.name
	s.told[key]++
	switch {
	case s.told[key] > 1 || len(s.told) > 40:
		t.Errorf("%s: %s", rule, c.name())
	case class == "":
		t.Errorf("%s, of no class that is known: %s\n%s", rule, c.name(), c.repro())
	default:
		t.Errorf("%s, of the class %q but not listed there: %s\n%s", rule, class, c.name(), c.repro())
	}
}

func (s *tally) String() string { return fmt.Sprintf("%d cells, %d of them fail", s.cells, s.failed) }

// known is the cells that fail, by class.
type known struct {
	cells map[string]map[string]bool
}

const (
	knownFile  = "testdata/known.txt"
	familyFile = "testdata/family.txt"
)

func newKnown() *known { return &known{map[string]map[string]bool{}} }

func (k *known) add(class, name string) {
	if k.cells[class] == nil {
		k.cells[class] = map[string]bool{}
	}
	k.cells[class][name] = true
}

func (k *known) has(class, name string) bool { return k.cells[class][name] }

// mustAllBeIn fails the test where a cell that is listed breaks no promise.
func (k *known) mustAllBeIn(t *testing.T, found *known) {
	t.Helper()
	for _, class := range slices.Sorted(maps.Keys(k.cells)) {
		for _, name := range slices.Sorted(maps.Keys(k.cells[class])) {
			if !found.has(class, name) {
				t.Errorf("%s passes, and is listed under %q: run with -update and look at the difference", name, class)
			}
		}
	}
}

func readKnown(t *testing.T) *known {
	t.Helper()
	return readKnownIn(t, knownFile)
}

func readKnownIn(t *testing.T, name string) *known {
	t.Helper()
	k := newKnown()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if os.IsNotExist(err) {
		return k
	}
	must(t, err)
	class := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if name, indented := strings.CutPrefix(line, "\t"); indented {
			k.add(class, name)
		} else {
			class = line
		}
	}
	return k
}

func (k *known) writeTo(t *testing.T, name string) {
	t.Helper()
	var b strings.Builder
	for _, class := range slices.Sorted(maps.Keys(k.cells)) {
		fmt.Fprintln(&b, class)
		for _, name := range slices.Sorted(maps.Keys(k.cells[class])) {
			fmt.Fprintf(&b, "\t%s\n", name)
		}
	}
	must(t, os.WriteFile(filepath.FromSlash(name), []byte(b.String()), 0o600))
}
