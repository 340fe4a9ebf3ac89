package claim

import (
	"fmt"
	"strings"
)

// A row is locked as it is by then, and only what its conditions say of the row itself is looked at once more: a sub-query, a joined row or a
// function still answer as when the statement began. A rival may have claimed the row since. So where the conditions are not all on the row, only
// one that is still what it was counts as free.
//
// seen is how it is told: the row's xmin, or all of the row of a view, which has none.
type seen string

const (
	seenByXmin seen = `%s."xmin"`
	seenWhole  seen = "(%s.*)::text"
)

func (s seen) of(table string) string { return fmt.Sprintf(string(s), table) }

// unchanged writes the query around that of the free rows, which leaves out those that have changed. It selects what is carried: the keys first.
func (s seen) unchanged(own, named string, columns, keys, carried []string) (before, behind string) {
	const free, then = `"gormlock_seen"`, `"gormlock_then"`
	all, same, null := make([]string, len(keys)), make([]string, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		all[i] = free + "." + key
		same[i] = then + columns[i][len(own):] + "=" + all[i]
		null[i] = all[i] + " IS NOT DISTINCT FROM NULL" // IS NULL is true of a row of NULLs too
	}
	found := " FROM " + named + " AS " + then + " WHERE " + strings.Join(same, " AND ")
	cases := "WHEN " + strings.Join(null, " OR ") + " THEN " + keyless.raise(all[0]) + " WHEN " + free + `."gormlock_state" IN (SELECT ` + s.of(then) + found + ") THEN true"
	if s == seenWhole { // two looks at what it was must show the same
		again := "(SELECT min(" + s.of(then) + ")" + found + ")"
		cases += " WHEN " + again + "<>" + again + " THEN " + restless.raise(all[0])
	}
	// With CASE the planner takes it for likely, as it is: it would read the whole table for a few rows otherwise.
	for _, more := range carried[len(keys):] {
		all = append(all, free+"."+more)
	}
	return "SELECT " + strings.Join(all, ",") + " FROM (", ") AS " + free + " WHERE CASE " + cases + " END"
}
