package invariants

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestRooted_samples runs cells of parts at random.
func TestRooted_samples(t *testing.T) {
	t.Parallel()
	seed, until := seedOf(t), untilOf(t)
	r := rand.New(rand.NewPCG(seed, 1))
	seen := &tally{}
	for round := 0; round == 0 || time.Now().Before(until) && !t.Failed(); round++ {
		var cells []*cell
		for len(cells) < samples {
			c := &cell{form: &forms[r.IntN(len(forms))], shape: rooted[r.IntN(len(rooted))], state: &states[r.IntN(len(states))],
				scope: &scopes[r.IntN(len(scopes))], config: configurations[r.IntN(len(configurations))].name}
			c.parted.variant = variants[r.IntN(len(variants))]
			if c.fitsPart() && strings.Contains(c.form.name, *chosen) {
				cells = append(cells, c)
			}
		}
		runRooted(t, cells, seen)
	}
	t.Logf("seed %d: %v", seed, seen)
}

func itself(c *cell) *cell { return c }

// fitsPart reports whether a cell makes sense for a part: it is not written outside of a transaction, and a root that is held in one
// that nobody sees is unread.
func (c *cell) fitsPart() bool {
	return c.makesSense() && c.config != "SkipDefaultTransaction" && (c.parted.variant != "holds" || !c.isHidden())
}

// runRooted runs cells of parts. None may fail, but for what is known.
func runRooted(t *testing.T, cells []*cell, seen *tally) {
	t.Helper()
	ended := make(chan *cell, len(cells))
	onWorlds(t, cells, func(w *world, t testing.TB, c *cell) {
		t.Helper()
		c.w = w
		c.run(t)
		ended <- c
	})
	close(ended)
	for c := range ended {
		seen.count(c)
		for _, rule := range c.rules() {
			if class := c.classOf(rule); class == "" {
				seen.complain(t, c, fmt.Sprintf("%s (%s)", rule, c.parted.variant), "")
				for _, v := range c.found {
					t.Logf("\t%s: %.400s", v.rule, v.what)
				}
				t.Logf("\tit said %v, %v", c.err, c.end)
			}
		}
	}
}
