package guard

import (
	"slices"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/column"
)

// chosenBy returns the versions that a row with one of the tags can have: a value if there is only one, otherwise a choice.
func chosenBy(t *asked.Tags, v *column.Version) (column.Value, *choice) {
	c := &choice{Tags: t}
	for _, tag := range t.List {
		if version, ok := v.OfTag(tag); ok && !slices.ContainsFunc(c.versions, version.Equal) {
			c.versions = append(c.versions, version)
		}
	}
	if len(c.versions) == 1 {
		return c.versions[0], nil
	}
	return column.Value{Null: true}, c
}

// choice is a set of versions, of which a row must have one. It is empty if no row can have the tags.
type choice struct {
	*asked.Tags
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
func (c *choice) has(v column.Value) bool { return c.Any || slices.ContainsFunc(c.versions, v.Equal) }

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
