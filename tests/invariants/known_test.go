package invariants

import (
	"slices"
	"strings"
)

// class is a kind of failure that is known: what is promised and not kept yet. When it is cured its cells pass, and the
// class and its lines in testdata/known.txt must go.
type class struct {
	name  string
	holds func(c *cell, rule string) bool
}

// classes are looked at in their order, for each rule that a cell breaks. What stands here no plugin of GORM's can see.
var classes = []class{
	// docs/version-limits.md: ScanRows runs no callback, so nothing tells where the rows came from.
	{"what ScanRows read keeps its version after a rollback", func(c *cell, rule string) bool {
		return c.form.name == "raw update, ScanRows" && (c.undone() || c.err != nil) && slices.Contains([]string{"ahead", "not fresh", "silent overwrite later"}, rule)
	}},
	// docs/version-limits.md: each batch is a statement of its own, and GORM begins no transaction for all of them.
	{"with SkipDefaultTransaction a batch that fails leaves those before it", func(c *cell, rule string) bool {
		return c.form.name == "upsert in batches" && c.config == "SkipDefaultTransaction" && !c.scope.inside && strings.HasPrefix(rule, "error but")
	}},
}

// classOf is the class of a violation; empty where it has none.
func (c *cell) classOf(rule string) string {
	for _, one := range classes {
		if one.holds(c, rule) {
			return one.name
		}
	}
	return ""
}
