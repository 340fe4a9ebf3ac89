package guard

import (
	"slices"
	"strings"

	"github.com/gormlock/gormlock/internal/column"
)

// tags are the entity tags that came in If-Match: a row is written if it has one of them.
type tags struct {
	any  bool     // whichever the row has: If-Match: *
	list []string // the strong ones
}

// ExpectTags lets a statement write only rows that have one of these entity tags.
func ExpectTags(list []string) Clause {
	return Clause{change: func(i *Intent) { i.Expects, i.Expected = true, &tags{list: list} }}
}

// ExpectRow lets a statement write a row at any version, and fail where there is none.
func ExpectRow() Clause {
	return Clause{change: func(i *Intent) { i.Expects, i.Expected = true, &tags{any: true} }}
}

// String is the tags as they came, cut where there are many.
func (t *tags) String() string {
	if t.any {
		return "*"
	}
	text := strings.Join(t.list, ", ")
	if len(text) > longestTags {
		text = text[:longestTags] + "…"
	}
	return text
}

const longestTags = 100

// of returns the versions that a row may have: one value if there is only one, otherwise a choice.
func (t *tags) of(v *column.Version) (column.Value, *choice) {
	c := &choice{tags: t}
	for _, tag := range t.list {
		if version, ok := v.OfTag(tag); ok && !slices.ContainsFunc(c.versions, version.Equal) {
			c.versions = append(c.versions, version)
		}
	}
	if len(c.versions) == 1 {
		return c.versions[0], nil
	}
	return column.Value{Null: true}, c
}

// choice is a set of versions. A row must have one of them. It is empty if no row can have the tags.
type choice struct {
	*tags
	versions []column.Value
}

// all returns its versions. A nil choice has none.
func (c *choice) all() []column.Value {
	if c == nil {
		return nil
	}
	return c.versions
}

// has reports whether a row at this version may be written.
func (c *choice) has(v column.Value) bool { return c.any || slices.ContainsFunc(c.versions, v.Equal) }

// holdChoice writes that the row has one of the versions.
func (v *versionGuard) holdChoice(b builder) {
	b.Text("(")
	between := ""
	var plain []column.Value
	for _, version := range v.choice.versions {
		if v.Plainly(version) || v.IsSystem() {
			plain = append(plain, version)
			continue
		}
		b.Text(between)
		v.holdOne(b, version)
		between = " OR "
	}
	switch {
	case len(plain) > 0:
		b.Text(between, b.draft.model.In(b.Statement).Held, " IN (")
		for i, version := range plain {
			if i > 0 {
				b.Text(",")
			}
			v.writeValue(b, version)
		}
		b.Text(")")
	case between == "":
		b.Text("1=0")
	}
	b.Text(")")
}
