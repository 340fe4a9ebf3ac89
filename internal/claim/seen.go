package claim

import (
	"fmt"
	"strings"
)

// When the server locks a row, it takes the row's current version, and checks only the conditions on the row itself again. A sub-query, a joined
// row or a function still gives the answer from when the statement began. A rival may have claimed the row since. So unless all conditions are on
// the row itself, a row counts as free only if it has not changed since the statement began.
//
// seen is the SQL that shows whether a row has changed: its xmin, or the whole row of a view, which has no xmin.
type seen string

const (
	seenByXmin seen = `%s."xmin"`
	seenWhole  seen = "(%s.*)::text"
)

func (s seen) of(table string) string { return fmt.Sprintf(string(s), table) }

// unchanged is the text before and after the query of the free rows that leaves out changed rows. It selects the columns in carried: the keys
// first.
func (s seen) unchanged(own, named string, columns, keys, carried []string) (before, behind string) {
	const free, then = `"gormlock_seen"`, `"gormlock_then"`
	all, same, null := make([]string, len(keys)), make([]string, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		all[i] = free + "." + key
		same[i] = then + columns[i][len(own):] + "=" + all[i]
		null[i] = all[i] + " IS NOT DISTINCT FROM NULL" // not IS NULL, which is also true for a composite value with only NULLs
	}
	found := " FROM " + named + " AS " + then + " WHERE " + strings.Join(same, " AND ")
	cases := "WHEN " + strings.Join(null, " OR ") + " THEN " + keyless.raise(all[0]) + " WHEN " + free + `."gormlock_state" IN (SELECT ` + s.of(then) + found + ") THEN true"
	if s == seenWhole { // reading the old row twice must give the same
		again := "(SELECT min(" + s.of(then) + ")" + found + ")"
		cases += " WHEN " + again + "<>" + again + " THEN " + restless.raise(all[0])
	}
	// With CASE the planner expects the condition to be true often, as it is. Otherwise it would read the whole table for a few rows.
	for _, more := range carried[len(keys):] {
		all = append(all, free+"."+more)
	}
	return "SELECT " + strings.Join(all, ",") + " FROM (", ") AS " + free + " WHERE CASE " + cases + " END"
}
