package guard

import (
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/concern"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/reading"
	"github.com/gormlock/gormlock/internal/statement"
)

// builder writes the text of a guarded statement.
type builder struct {
	statement.SQL
	draft *draft
	rest  clause.ClauseBuilder // the dialect's builder; nil if it has none for this clause
}

// builderOf returns a builder for the contents of a clause.
func builderOf(to clause.Builder, d *draft) builder {
	return builder{SQL: statement.SQL{Statement: to.(*gorm.Statement)}, draft: d} //nolint:forcetypeassert // checked by InstallBuilders
}

// plainly builds a clause as the dialect does.
func plainly(rest clause.ClauseBuilder, c clause.Clause, to clause.Builder) {
	if rest != nil {
		rest(c, to)
	} else {
		c.Build(to)
	}
}

// InstallBuilders puts the builders of guarded statements before those of the dialect. So the conditions of guards are not among the clauses, and
// GORM still refuses a statement without conditions. The builders see every SET, even that of a soft delete and of the generics API. Installing
// them twice does no harm.
func InstallBuilders(db *gorm.DB) {
	for name, build := range map[string]func(builder, clause.Clause) bool{
		"SET":         builder.buildSet,
		"WHERE":       builder.buildWhere,
		"VALUES":      builder.buildValues,
		"ON CONFLICT": builder.buildConflict,
		"RETURNING":   builder.buildReturning,
	} {
		rest := db.ClauseBuilders[name]
		db.ClauseBuilders[name] = func(c clause.Clause, to clause.Builder) {
			if stmt, ok := to.(*gorm.Statement); ok {
				if w := writeOf(stmt); w != nil && w.built.armed && build(builder{statement.SQL{Statement: stmt}, &w.draft, rest}, c) {
					return
				}
				if name == "ON CONFLICT" {
					c = builder{SQL: statement.SQL{Statement: stmt}}.failOutside(c)
				}
			}
			plainly(rest, c, to)
		}
	}
	rest := db.ClauseBuilders["SELECT"]
	db.ClauseBuilders["SELECT"] = func(c clause.Clause, to clause.Builder) {
		plainly(rest, c, to)
		if stmt, ok := to.(*gorm.Statement); ok && !concern.IsNone(stmt) {
			selectSystemColumn(c, stmt)
		}
	}
}

// selectSystemColumn adds xmin to a query that selects everything: * does not include it.
func selectSystemColumn(c clause.Clause, stmt *gorm.Statement) {
	s, ok := c.Expression.(clause.Select)
	if ok {
		defer reading.SelectOwnUnread(s, stmt)
	}
	if !ok || len(s.Columns) > 0 || s.Expression != nil || s.Distinct {
		return
	}
	m := model.Of(stmt.DB)
	if m == nil || m.Column == nil || !m.Column.IsSystem() {
		return
	}
	if !statement.IsPostgres(stmt.DB) {
		fault.Add(stmt.DB, fault.ErrNotPostgres)
		return
	}
	statement.SQL{Statement: stmt}.Text(",", m.In(stmt).Column)
}

// buildSet writes the caller's assignments, then those of the guards.
func (b builder) buildSet(c clause.Clause) bool {
	set, ok := c.Expression.(clause.Set)
	if !ok {
		return false
	}
	d := b.draft
	if d.intent.Merges() {
		if err := d.intent.Merged.Before(b.Statement); err != nil {
			fault.Add(b.DB, err)
			return true
		}
		set = d.onlyMerged(set)
	}
	d.job.weigh(d.model.Schema, set)
	d.wantUnheld(b.Statement, set)
	d.wantLinks(b.Statement, set)
	guards := d.guards()
	if guards[0] == nil && guards[1] == nil && !d.intent.Merges() && !d.marksFound(b.Statement) {
		return false
	}
	d.built.any, d.built.set = true, true
	d.built.hides = len(d.model.Schema.QueryClauses) > 0 && slices.ContainsFunc(set, d.hides)
	if d.version.is() {
		d.weigh(set)
		b.refuseFull()
	}
	b.Text("SET ")
	written := false
	b.refuseOtherNames(set)
	for i := range set {
		if owned(guards, set[i].Column.Name) {
			continue
		}
		if written {
			b.Text(",")
		}
		written = true
		b.assignee(&set[i].Column)
		b.Text("=")
		b.Expression(set[i].Value)
	}
	for _, g := range guards {
		if g != nil {
			written = g.assign(b, written)
		}
	}
	if d.marksFound(b.Statement) {
		b.markFound(written)
		written = true
	}
	if !written { // a hook could have changed something, but did not
		key := clause.Column{Name: d.model.Schema.PrimaryFieldDBNames[0]}
		b.assignee(&key)
		b.Text("=")
		b.assignee(&key)
	}
	return true
}

// assignee writes the column that an assignment sets.
func (b builder) assignee(c *clause.Column) {
	if c.Table == "" && c.Alias == "" && !c.Raw {
		if quoted := b.draft.model.Quoted(c.Name); quoted != "" {
			b.Text(quoted)
			return
		}
	}
	b.QuoteTo(b.Statement, *c)
}

// owned reports whether a guard itself assigns the column.
func owned(guards [4]guard, column string) bool {
	for _, g := range guards {
		if g != nil && g.owns(column) {
			return true
		}
	}
	return false
}

// buildWhere writes the caller's conditions and the conditions of the guards.
func (b builder) buildWhere(c clause.Clause) bool {
	where, ok := c.Expression.(clause.Where)
	if !ok || c.Builder != nil || len(where.Exprs) == 0 {
		return false
	}
	d := b.draft
	d.built.any = true
	d.built.unchecked = d.built.timesOnly && !d.built.named && d.isLenient()
	if !d.compares() && !d.built.nothing && !d.where.addKey && !d.fence.guards() && !d.guardsJob() && (d.isBulk() || isPlain(where.Exprs)) {
		return false
	}
	if c.BeforeExpression != nil || c.AfterNameExpression != nil || c.AfterExpression != nil {
		c.Expression, c.AfterExpression = guardedWhere{d, where, c.AfterExpression}, nil
		c.Build(b.Statement)
	} else {
		b.Text("WHERE ")
		guardedWhere{d, where, nil}.Build(b.Statement)
	}
	if isLast(b.Statement, "WHERE") {
		b.failKept(" RETURNING ", "")
	}
	return true
}

// guardedWhere is the caller's conditions, and the conditions of the guards.
type guardedWhere struct {
	draft *draft
	where clause.Where
	after clause.Expression // conditions that another plugin adds; nil: none
}

// Build writes the caller's conditions and those of the guards.
func (g guardedWhere) Build(to clause.Builder) {
	b, addKey := builderOf(to, g.draft), g.draft.where.addKey
	switch {
	case g.after != nil: // it may be an Or
		b.Text("(")
		mark.Brackets(g.where.Exprs).Build(b.Statement)
		b.Text(" ")
		g.after.Build(b.Statement)
		b.Text(")")
		addKey = !g.draft.isBulk()
	case g.writesKey(b):
	case isPlain(g.where.Exprs):
		g.where.Build(b.Statement)
	default:
		mark.Brackets(g.where.Exprs).Build(b.Statement)
		addKey = !g.draft.isBulk() // conditions added after gormlock's may be an Or to the key
	}
	if g.draft.built.nothing {
		b.Text(" AND 1=0")
		return
	}
	if addKey {
		g.addKey(b)
	}
	if g.draft.built.holds = true; g.draft.built.full {
		b.Text(" AND 1=0")
		return
	}
	guards := g.draft.guards()
	for _, i := range [...]int{1, 2, 0, 3} {
		if guards[i] != nil {
			guards[i].hold(b)
		}
	}
}

// addKey writes the keys of the structs.
func (g guardedWhere) addKey(b builder) {
	if g.draft.batch {
		keys := make([][]any, len(g.draft.rows))
		for i := range keys {
			keys[i] = g.draft.rows[i].Key
		}
		b.Text(" AND ")
		b.keys(b.Table, keys)
		return
	}
	for i, field := range g.draft.model.Schema.PrimaryFields {
		b.Text(" AND ")
		b.Column(b.Table, field.DBName)
		b.Text("=")
		b.Expression(g.draft.named(b.Statement, &g.draft.rows[0]).Key[i])
	}
}

// writesKey writes the caller's only condition if it says that a column has a value. GORM would write the same, but more slowly. It reports whether
// it wrote it.
func (g guardedWhere) writesKey(b builder) bool {
	if len(g.where.Exprs) != 1 {
		return false
	}
	is, ok := g.where.Exprs[0].(clause.Eq)
	name, named := is.Column.(string)
	if !ok || !named || !statement.IsScalar(is.Value) {
		return false
	}
	quoted := g.draft.model.Quoted(name)
	if quoted != "" {
		b.Text(quoted, " = ")
		b.Value(is.Value)
	}
	return quoted != ""
}

// buildValues adds the columns of the guards to every new row.
func (b builder) buildValues(c clause.Clause) bool {
	values, ok := c.Expression.(clause.Values)
	d := b.draft
	d.built.proposed = int32(max(1, len(values.Values)))
	if !ok || (!d.version.is() || d.version.IsSystem() && !d.upsert.holds()) && d.fence == nil {
		return false
	}
	d.built.any = true
	if d.version.is() {
		d.version.insert(b, &values)
		b.proposeHeld(&values)
	}
	if d.fence != nil {
		d.fence.insert(b, &values)
	}
	c.Expression = values
	c.Build(b.Statement)
	return true
}

// buildConflict makes an upsert update the rows that it finds only if the guards allow it.
func (b builder) buildConflict(c clause.Clause) bool {
	found, ok := c.Expression.(clause.OnConflict)
	d := b.draft
	versions := d.upsert != nil && d.version.is() && !d.version.IsSystem()
	if ok && d.upsert.holds() {
		b.updateHeld(&found)
	}
	if ok && d.refuseNothing(b.Statement, found) {
		return false
	}
	mixed := d.upsert != nil && d.upsert.onlyInserts()
	if !ok || found.DoNothing || !versions && !d.upsert.holds() && d.fence == nil && !mixed {
		return false
	}
	d.built.conflicts = true
	if !isPlain(found.TargetWhere.Exprs) { // our conditions come after it
		found.TargetWhere.Exprs = []clause.Expression{mark.Brackets(found.TargetWhere.Exprs)}
	}
	if d.upsert != nil && d.upsert.whole && len(d.model.Renewed) > 0 {
		found.DoUpdates = d.withoutRenewed(found.DoUpdates)
	}
	b.refuseOtherNames(found.DoUpdates)
	if versions {
		d.version.conflict(b, &found)
	}
	if d.fence != nil {
		d.fence.conflict(b, &found)
	}
	if d.job != nil {
		d.job.conflict(b, &found)
	}
	if mixed {
		found.Where.Exprs = beside(onlyKeyed{d}, found.Where.Exprs)
	}
	if dialect.Of(b.DB).IsMySQL() {
		b.failWhereRefused(&found)
	}
	c.Expression = found
	plainly(b.rest, c, b.Statement)
	return true
}
