package guard

import (
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// built is what building the statement has shown.
type built struct {
	armed     bool // the builders take part
	any       bool // something was built
	set       bool // it has a SET
	bumps     bool // the version moves
	nothing   bool // nothing is SET, so no row will be found
	marked    bool // the server remembers whether it found the row
	asked     bool // the server was asked what the statement found
	named     bool // the version is named by what is SET, or by the caller
	unchecked bool // the version is not compared after all: see lenient
	timesOnly bool // only times that GORM adds to every update are SET
	unheld    bool // what is SET is not what the structs hold, and is not returned
	hides     bool // a soft delete may be among what is SET
}

// builder writes the text of a guarded statement.
type builder struct {
	statement.SQL
	w    *Write
	rest clause.ClauseBuilder // of the dialect; nil if it has none for this clause
}

// builderOf returns a builder for the contents of a clause.
func builderOf(to clause.Builder, w *Write) builder {
	return builder{SQL: statement.SQL{Statement: to.(*gorm.Statement)}, w: w} //nolint:forcetypeassert // checked by InstallBuilders
}

// plainly builds a clause as the dialect does.
func plainly(rest clause.ClauseBuilder, c clause.Clause, to clause.Builder) {
	if rest != nil {
		rest(c, to)
	} else {
		c.Build(to)
	}
}

// InstallBuilders puts the builders of guarded statements before those of the dialect. The conditions of guards are then not
// among the clauses, so GORM still refuses a statement without conditions. The builders see every SET, even that of a soft
// delete and of the generics API. To install them twice does no harm.
func InstallBuilders(db *gorm.DB) {
	for name, build := range map[string]func(builder, clause.Clause) bool{
		"SET":         builder.buildSet,
		"WHERE":       builder.buildWhere,
		"VALUES":      builder.buildValues,
		"ON CONFLICT": builder.buildConflict,
	} {
		rest := db.ClauseBuilders[name]
		db.ClauseBuilders[name] = func(c clause.Clause, to clause.Builder) {
			if stmt, ok := to.(*gorm.Statement); ok {
				if w := writeOf(stmt); w != nil && w.built.armed && build(builder{statement.SQL{Statement: stmt}, w, rest}, c) {
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
		if stmt, ok := to.(*gorm.Statement); ok {
			selectSystemColumn(c, stmt)
		}
	}
}

// selectSystemColumn adds xmin to a query that selects everything: * does not include it.
func selectSystemColumn(c clause.Clause, stmt *gorm.Statement) {
	s, ok := c.Expression.(clause.Select)
	if ok {
		defer selectOwnUnread(s, stmt)
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

// arm makes the builders take part in the statement.
func (w *Write) arm(stmt *gorm.Statement) {
	w.built.armed = true
	if len(w.rows) > 0 && w.readsBack(stmt) && !returns(stmt) && statement.AsksForRows(stmt) {
		w.want(w.model.Schema.PrimaryFields...)
	}
	if w.returning.wanted() || w.returning != nil && len(w.returning.watched) > 0 {
		w.returning.install(w, stmt)
	}
}

// buildSet writes the caller's assignments, and after them those of the guards.
func (b builder) buildSet(c clause.Clause) bool {
	set, ok := c.Expression.(clause.Set)
	if !ok {
		return false
	}
	w := b.w
	set = w.onlyMerged(set)
	w.wantUnheld(b.Statement, set)
	w.wantLinks(b.Statement, set)
	guards := w.guards()
	if guards[0] == nil && guards[1] == nil && !w.intent.Merges() && !w.marksFound(b.Statement) {
		return false
	}
	w.built.any, w.built.set = true, true
	w.built.hides = len(w.model.Schema.QueryClauses) > 0 && slices.ContainsFunc(set, w.hides)
	if w.version.is() {
		w.weigh(set)
	}
	b.Text("SET ")
	written := false
	for i := range set {
		if owned(guards, set[i].Column.Name) {
			continue
		}
		if written {
			b.Text(",")
		}
		written = true
		if quoted := w.model.Quoted(&set[i].Column); quoted != "" {
			b.Text(quoted, "=")
		} else {
			b.QuoteTo(b.Statement, set[i].Column)
			b.Text("=")
		}
		b.Expression(set[i].Value)
	}
	for _, g := range guards {
		if g != nil {
			written = g.assign(b, written)
		}
	}
	if w.marksFound(b.Statement) {
		b.markFound(written)
	}
	return true
}

// owned reports whether a guard assigns the column itself.
func owned(guards [3]guard, column string) bool {
	for _, g := range guards {
		if g != nil && g.owns(column) {
			return true
		}
	}
	return false
}

// weigh decides from the SET clause whether the version moves. It does not move if only unversioned columns
// change; the time that GORM adds to every update does not count.
func (w *Write) weigh(set clause.Set) {
	others, unversioned, times, named := 0, 0, 0, false
	for i := range set {
		name := set[i].Column.Name
		if w.version.owns(name) {
			named = true
			continue
		}
		if others++; !w.model.Weighs {
			continue
		}
		if w.model.Unversioned[name] {
			unversioned++
		} else if field := w.model.Schema.FieldsByDBName[name]; field != nil && field.AutoUpdateTime > 0 {
			times++
		}
	}
	moves := others > 0 || w.version.forced || w.where.mustWrite
	w.built.nothing = !moves
	w.built.named = named || w.version.given
	w.built.timesOnly = others > 0 && times == others
	w.built.bumps = moves && !w.intent.preserves() && (unversioned == 0 || unversioned+times < others)
}

// buildWhere writes the caller's conditions and the conditions of the guards.
func (b builder) buildWhere(c clause.Clause) bool {
	where, ok := c.Expression.(clause.Where)
	if !ok || c.Builder != nil || len(where.Exprs) == 0 {
		return false
	}
	w := b.w
	w.built.any = true
	w.built.unchecked = w.built.timesOnly && !w.built.named && w.isLenient()
	if !w.compares() && !w.built.nothing && !w.where.addKey && !w.fence.guards() {
		return false
	}
	if c.BeforeExpression != nil || c.AfterNameExpression != nil || c.AfterExpression != nil {
		c.Expression = guardedWhere{w, where}
		c.Build(b.Statement)
		return true
	}
	b.Text("WHERE ")
	guardedWhere{w, where}.Build(b.Statement)
	return true
}

// isLenient reports that the struct was not read from its row, but the statement sets only the time of the update. Such a
// statement is not refused: association mode sends it, without a version.
func (w *Write) isLenient() bool {
	return !w.batch && !w.where.mustWrite && !w.version.forced && !w.version.given && len(w.rows) == 1 && !w.version.Loaded(w.rows[0].Expected)
}

// guardedWhere is the caller's conditions, and the conditions of the guards.
type guardedWhere struct {
	w     *Write
	where clause.Where
}

// Build writes both.
func (g guardedWhere) Build(to clause.Builder) {
	b := builderOf(to, g.w)
	if isPlain(g.where.Exprs) {
		g.where.Build(b.Statement)
	} else {
		b.Text("(")
		g.where.Build(b.Statement)
		b.Text(")")
	}
	if g.w.built.nothing {
		b.Text(" AND 1=0")
		return
	}
	if g.w.where.addKey {
		for i, field := range g.w.model.Schema.PrimaryFields {
			b.Text(" AND ")
			b.Column(b.Table, field.DBName)
			b.Text("=")
			b.Expression(g.w.named(b.Statement, &g.w.rows[0]).Key[i])
		}
	}
	guards := g.w.guards()
	for _, i := range [...]int{1, 2, 0} {
		if guards[i] != nil {
			guards[i].hold(b)
		}
	}
}

// isPlain reports whether conditions can stand beside an AND without parentheses.
func isPlain(exprs []clause.Expression) bool {
	for _, expr := range exprs {
		switch expr.(type) {
		case clause.Eq, clause.IN:
		default:
			return false
		}
	}
	return true
}

// buildValues adds the columns of the guards to every new row.
func (b builder) buildValues(c clause.Clause) bool {
	values, ok := c.Expression.(clause.Values)
	w := b.w
	if !ok || (!w.version.is() || w.version.IsSystem()) && w.fence == nil {
		return false
	}
	w.built.any = true
	if w.version.is() {
		w.version.insert(b, &values)
	}
	if w.fence != nil {
		w.fence.insert(b, &values)
	}
	c.Expression = values
	c.Build(b.Statement)
	return true
}

// buildConflict makes an upsert update the rows that it finds only if the guards allow it.
func (b builder) buildConflict(c clause.Clause) bool {
	found, ok := c.Expression.(clause.OnConflict)
	w := b.w
	versions := w.upsert != nil && w.version.is() && !w.version.IsSystem()
	if !ok || found.DoNothing || !versions && w.fence == nil {
		return false
	}
	if versions {
		w.version.conflict(b, &found)
	}
	if w.fence != nil {
		w.fence.conflict(b, &found)
	}
	if dialect.Of(b.DB).IsMySQL() {
		b.failWhereRefused(&found)
	}
	c.Expression = found
	plainly(b.rest, c, b.Statement)
	return true
}
