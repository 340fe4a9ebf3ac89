package guard

import (
	"slices"
	"strconv"

	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/statement"
)

// conflict makes an upsert update found rows only at the expected version, and moves the version.
func (v *versionGuard) conflict(b builder, found *clause.OnConflict) {
	name := v.Field.DBName
	set := slices.DeleteFunc(slices.Clone(found.DoUpdates), func(a clause.Assignment) bool { return a.Column.Name == name })
	bump := clause.Assignment{Column: clause.Column{Name: name}, Value: upsertBump{b.draft, set}}
	found.DoUpdates = append(slices.Clone(set), bump)
	if v.checked || b.draft.upsert.links {
		found.Where.Exprs = beside(upsertGuard{b.draft, set}, found.Where.Exprs)
	}
}

// beside combines the caller's conditions with ours so that ours must hold too, even if there is an OR among them.
func beside(ours clause.Expression, own []clause.Expression) []clause.Expression {
	if len(own) == 0 {
		return []clause.Expression{ours}
	}
	return []clause.Expression{ours, mark.Brackets(own)}
}

// upsertBump is the new version of a row that an upsert found. It always differs from the proposed version, so a row that is returned with the
// proposed version was inserted.
type upsertBump struct {
	draft *draft
	set   clause.Set
}

// Build writes it.
func (u upsertBump) Build(to clause.Builder) {
	b := builderOf(to, u.draft)
	v, had, speaks := &u.draft.version, u.draft.model.In(b.Statement).Column, dialect.Of(b.DB)
	if u.draft.intent.Preserves() {
		b.Text(had)
		return
	}
	if u.draft.upsert.links {
		b.Text("CASE WHEN ")
		b.Text("NOT ")
		b.compareLinks(u.set)
		if apart := u.draft.structsWhere(func(r upsertRow) bool { return r.apart }); v.IsInteger() && len(apart) > 0 {
			b.Text(" OR ") // a row that is not compared may have it
			b.proposes(had, apart)
		}
		b.Text(" THEN ")
		defer b.Text(" ELSE ", had, " END")
	}
	switch {
	case v.IsTemporal() && speaks.IsSQLite():
		b.Value(v.Sent(column.At(v.later.Time().Add(v.Tick))))
	case v.IsTemporal():
		speaks.Latest(b.Text, func() { b.Value(v.Sent(v.later)) }, had, v.Tick)
	default:
		first, one := strconv.FormatInt(v.Initial, 10), u.draft.model.In(b.Statement).One
		b.Text("CASE WHEN ")
		if slices.ContainsFunc(u.draft.upsert.rows, func(r upsertRow) bool { return r.exists }) {
			proposed := b.proposed(v.Field.DBName)
			b.Text(had, "+", one, "=", proposed, " THEN ", had, "+", one, "+", one, " WHEN ")
		}
		b.Text(had, ">", first, " THEN ", had, "+", one, " ELSE ", first, "+1 END")
	}
}

// proposes writes that the row of one of these structs has the version that the struct proposes.
func (b builder) proposes(had string, apart []int) {
	v := &b.draft.version
	if b.sendsVersions(apart) {
		b.isAt(had, apart, v.proposes)
	} else {
		b.Text(had, "=", b.proposed(v.Field.DBName))
	}
	if others := b.draft.structsWhere(func(r upsertRow) bool { return !r.apart && (r.loaded || r.unsure) }); len(others) > 0 {
		b.Text(" AND NOT ")
		b.keys("excluded", b.draft.keysOf(others))
	}
}

// compareLinks writes the condition that the row has each of the foreign keys that are set.
func (b builder) compareLinks(set clause.Set) {
	b.Text("(")
	for i, assignment := range set {
		if i > 0 {
			b.Text(" AND ")
		}
		b.Column(b.Table, assignment.Column.Name)
		b.Text(dialect.Of(b.DB).Same())
		if column, is := dialect.Excluded(assignment.Value); is {
			b.Text(b.proposed(column))
		} else {
			b.Expression(assignment.Value)
		}
	}
	b.Text(")")
}

// proposed is the value that an upsert proposes for a column.
func (b builder) proposed(column string) string {
	return dialect.Of(b.DB).Proposed(b.Quote(column))
}

// upsertGuard is the condition on a row that an upsert found. It depends on the struct in the batch that stands for the row.
type upsertGuard struct {
	draft *draft
	set   clause.Set
}

// Build writes it.
func (g upsertGuard) Build(to clause.Builder) {
	b := builderOf(to, g.draft)
	d, links := g.draft, g.draft.upsert.links
	stays := func(r upsertRow) bool { return r.loaded && links && !r.moves && !r.apart }
	apart := func(r upsertRow) bool { return r.loaded && r.apart && !r.moves }
	movesApart := func(r upsertRow) bool { return r.loaded && r.apart && r.moves }
	moves := func(r upsertRow) bool { return r.loaded && !stays(r) && !r.apart }
	unread := func(r upsertRow) bool { return r.unread }
	known := func(r upsertRow) bool { return r.loaded || r.unread }

	b.Text("(")
	defer b.Text(")")
	if all := d.structsWhere(moves); len(all) == len(d.rows) {
		g.matches(b, all, false)
		return
	}
	unset := g.current(b) + " IS NULL"
	if d.version.IsInteger() {
		unset = g.current(b) + "=0"
	}
	between := ""
	for _, part := range []struct {
		rows []int
		cond func(rows []int)
	}{
		{d.structsWhere(moves), func(rows []int) { g.matches(b, rows, false) }},
		{d.structsWhere(stays), func(rows []int) { g.linksOr(b, rows, false) }},
		{d.structsWhere(apart), func(rows []int) { g.linksOr(b, rows, true) }},
		{d.structsWhere(movesApart), func(rows []int) { g.matches(b, rows, true) }},
		{d.structsWhere(unread), func([]int) { b.Text(unset) }},
	} {
		if len(part.rows) == 0 {
			continue
		}
		b.Text(between)
		part.cond(part.rows)
		b.Text(" AND ")
		b.keys("excluded", d.keysOf(part.rows))
		between = " OR "
	}
	switch keys := d.keysOf(d.structsWhere(known)); {
	case len(keys) == len(d.rows):
	case len(keys) == 0:
		b.Text("1=1")
	case len(keys) == len(d.upsert.keyed) && !d.upsert.unclear: // the others have no key: see onlyKeyed
	default:
		b.Text(between, "NOT (")
		b.keys("excluded", keys)
		b.Text(")")
	}
}

// current is the version that the row has, with a number instead of NULL.
func (g upsertGuard) current(b builder) string {
	name := g.draft.model.In(b.Statement).Held
	if g.draft.version.IsInteger() {
		return "COALESCE(" + name + ",0)"
	}
	return name
}

// matches writes that the row is the intended one, at the expected version.
func (g upsertGuard) matches(b builder, rows []int, apart bool) {
	b.Text("(")
	defer b.Text(")")
	if v := &g.draft.version; b.sendsVersions(rows) {
		b.isAt(g.current(b), rows, v.expects)
	} else {
		expected := b.proposed(v.Field.DBName)
		if apart {
			expected = v.back(b, expected)
		}
		b.Text(g.current(b), "=", expected)
	}
	for _, field := range g.draft.model.Schema.PrimaryFields {
		b.Text(" AND ", statement.Quoted(b.Statement, b.Table, field.DBName), "=", b.proposed(field.DBName))
	}
}

// linksOr allows writing a row that already has the right foreign keys, or that matches.
func (g upsertGuard) linksOr(b builder, rows []int, apart bool) {
	b.Text("(")
	b.compareLinks(g.set)
	b.Text(" OR ")
	g.matches(b, rows, apart)
	b.Text(")")
}

// back is the version from which [column.Version.Apart] computed the proposed one.
func (v *versionGuard) back(b builder, proposed string) string {
	speaks := dialect.Of(b.DB)
	if v.IsTemporal() {
		return proposed + "-" + speaks.Interval(v.FarInTime)
	}
	text := "CASE"
	for _, turn := range v.Turns() {
		text += " WHEN " + proposed + "=" + strconv.FormatInt(turn[1], 10) + " THEN " + strconv.FormatInt(turn[0], 10)
	}
	far := strconv.FormatInt(v.Far(), 10)
	return text + " WHEN CAST(" + proposed + " AS " + speaks.BigInt() + ")&" + far + "=0 THEN " + proposed + "+" + far + " ELSE " + proposed + "-" + far + " END"
}
