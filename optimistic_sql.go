package gormlock

import (
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// versionSQL is the text that versioned statements of one table have in common. It is written beside what GORM builds,
// not added to its clauses: so no predicate of ours passes GORM's guard against statements without conditions,
// and every SET is seen, that of a soft delete and of the generics API too.
type versionSQL struct {
	name    string // "version"
	column  string // "accounts"."version"
	bump    string // "version"="accounts"."version"+1
	bumpAny string // the same where the version may be NULL
	keep    string // "version"="accounts"."version"
}

func newVersionSQL(db *gorm.DB, m *versionedModel, table string) *versionSQL {
	stmt := &gorm.Statement{DB: db, Table: table}
	s := &versionSQL{}
	s.name = stmt.Quote(clause.Column{Name: m.column.field.DBName})
	s.column = stmt.Quote(clause.Column{Table: table, Name: m.column.field.DBName})
	s.bump = s.name + "=" + s.column + "+1"
	s.bumpAny = s.name + "=COALESCE(" + s.column + ",0)+1"
	s.keep = s.name + "=" + s.column
	return s
}

// in returns the text for the statement, which may call its table by another name.
func (m *versionedModel) in(stmt *gorm.Statement) *versionSQL {
	if stmt.Table == m.table {
		return m.sql
	}
	return newVersionSQL(stmt.DB, m, stmt.Table)
}

// buildVersions puts the builders of versioned statements before those the dialect has. Installed twice, they find
// nothing left to do.
func buildVersions(db *gorm.DB) {
	for name, build := range map[string]func(*versionWrite, clause.Clause, *gorm.Statement) bool{
		"SET":         (*versionWrite).buildSet,
		"WHERE":       (*versionWrite).buildWhere,
		"VALUES":      (*versionWrite).buildValues,
		"ON CONFLICT": (*versionWrite).buildOnConflict,
	} {
		rest := db.ClauseBuilders[name]
		db.ClauseBuilders[name] = func(c clause.Clause, builder clause.Builder) {
			if stmt, ok := builder.(*gorm.Statement); ok {
				if w := versionWriteOf(stmt); w != nil && w.armed && build(w, c, stmt) {
					return
				}
			}
			if rest != nil {
				rest(c, builder)
			} else {
				c.Build(builder)
			}
		}
	}
	rest := db.ClauseBuilders["SELECT"]
	db.ClauseBuilders["SELECT"] = func(c clause.Clause, builder clause.Builder) {
		if rest != nil {
			rest(c, builder)
		} else {
			c.Build(builder)
		}
		if stmt, ok := builder.(*gorm.Statement); ok {
			selectSystemColumn(c, stmt)
		}
	}
}

// selectSystemColumn adds xmin where everything is selected: it is not in *.
func selectSystemColumn(c clause.Clause, stmt *gorm.Statement) {
	s, ok := c.Expression.(clause.Select)
	if !ok || len(s.Columns) > 0 || s.Expression != nil || s.Distinct {
		return
	}
	m := versionedModelOf(stmt.DB)
	if m == nil || m.column == nil || m.column.kind != systemVersion {
		return
	}
	if !isPostgres(stmt.DB) {
		fail(stmt.DB, ErrNotPostgres)
		return
	}
	_ = stmt.WriteByte(',')
	_, _ = stmt.WriteString(m.in(stmt).column)
}

// add writes a placeholder for value.
func (w *versionWrite) add(stmt *gorm.Statement, value any) {
	stmt.Vars = append(stmt.Vars, value)
	stmt.BindVarTo(stmt, stmt, value)
}

// buildSet writes the assignments without the version and then what becomes of it.
func (w *versionWrite) buildSet(c clause.Clause, stmt *gorm.Statement) bool {
	set, ok := c.Expression.(clause.Set)
	if !ok {
		return false
	}
	w.wantComputed(stmt, set)
	column := w.model.column
	if column == nil && w.fence == nil {
		return false
	}
	w.built, w.set = true, true
	if column != nil {
		w.weigh(set)
	}
	_, _ = stmt.WriteString("SET ")
	written := false
	for i := range set {
		if column != nil && set[i].Column.Name == column.field.DBName || w.fence.leaves(set[i].Column.Name) {
			continue
		}
		if written {
			_ = stmt.WriteByte(',')
		}
		written = true
		stmt.QuoteTo(&stmt.SQL, set[i].Column)
		_ = stmt.WriteByte('=')
		stmt.AddVar(&stmt.SQL, set[i].Value)
	}
	if w.fence.guards() && !w.nothing {
		if written {
			_ = stmt.WriteByte(',')
		}
		written = true
		w.writeFence(stmt)
	}
	if column == nil {
		w.fence.refuseNothing(stmt, written)
		return true
	}
	if column.kind == systemVersion {
		return true
	}
	if w.bumps || !written {
		if written {
			_ = stmt.WriteByte(',')
		}
		w.writeBump(stmt)
	}
	return true
}

// weigh settles by what is SET whether the version moves: not where only unversioned columns change, for which
// the time that GORM adds to every update counts as none.
func (w *versionWrite) weigh(set clause.Set) {
	column := w.model.column.field.DBName
	others, unversioned, times := 0, 0, 0
	for i := range set {
		name := set[i].Column.Name
		if name == column {
			continue
		}
		if others++; !w.model.weighs {
			continue
		}
		if w.model.unversioned[name] {
			unversioned++
		} else if field := w.model.schema.FieldsByDBName[name]; field != nil && field.AutoUpdateTime > 0 {
			times++
		}
	}
	w.nothing = others == 0 && !w.forced
	w.timesOnly = others > 0 && times == others
	w.bumps = !w.nothing && !w.intent.preserves() && (unversioned == 0 || unversioned+times < others)
	if (others > 0 || w.intent.preserves()) && !w.bumps {
		w.single[0].next = w.single[0].expected
	}
}

func (w *versionWrite) writeBump(stmt *gorm.Statement) {
	text := w.model.in(stmt)
	switch {
	case !w.bumps:
		_, _ = stmt.WriteString(text.keep)
	case w.model.column.kind == temporalVersion:
		w.writeLater(stmt, text)
	case w.exact:
		_, _ = stmt.WriteString(text.bump)
	default:
		_, _ = stmt.WriteString(text.bumpAny)
	}
}

// writeLater moves a temporal version forward: to the time of this statement, and past the one it had.
func (w *versionWrite) writeLater(stmt *gorm.Statement, text *versionSQL) {
	_, _ = stmt.WriteString(text.name)
	if w.exact || !isPostgres(stmt.DB) {
		_ = stmt.WriteByte('=')
		w.add(stmt, w.later.time())
		return
	}
	_, _ = stmt.WriteString("=GREATEST(")
	w.add(stmt, w.later.time())
	_ = stmt.WriteByte(',')
	_, _ = stmt.WriteString(text.column)
	_, _ = stmt.WriteString("+interval '")
	_, _ = stmt.WriteString(strconv.FormatInt(w.model.column.tick.Microseconds(), 10))
	_, _ = stmt.WriteString(" microseconds')")
}

// buildWhere writes the caller's conditions and, beside them, the version they hold for.
func (w *versionWrite) buildWhere(c clause.Clause, stmt *gorm.Statement) bool {
	where, ok := c.Expression.(clause.Where)
	if !ok || c.Builder != nil || len(where.Exprs) == 0 {
		return false
	}
	w.built = true
	if w.timesOnly && w.lenient() {
		w.checked = false
	}
	if !w.checked && !w.nothing && !w.addKey && w.intent.columns() == nil && !w.fence.guards() {
		return false
	}
	if c.BeforeExpression != nil || c.AfterNameExpression != nil || c.AfterExpression != nil {
		c.Expression = guardedWhere{w, where}
		c.Build(stmt)
		return true
	}
	_, _ = stmt.WriteString("WHERE ")
	guardedWhere{w, where}.Build(stmt)
	return true
}

// guardedWhere is the caller's conditions and the version they hold for.
type guardedWhere struct {
	w     *versionWrite
	where clause.Where
}

// Build writes both.
func (g guardedWhere) Build(builder clause.Builder) {
	stmt := builder.(*gorm.Statement) //nolint:forcetypeassert // buildVersions looked
	if plain(g.where.Exprs) {
		g.where.Build(stmt)
	} else {
		_ = stmt.WriteByte('(')
		g.where.Build(stmt)
		_ = stmt.WriteByte(')')
	}
	if g.w.nothing {
		_, _ = stmt.WriteString(" AND 1=0")
		return
	}
	g.w.writePredicate(stmt)
}

// lenient tells that the struct was not read from its row, which is no reason to refuse a statement that sets only the
// time of the update: association mode does that.
func (w *versionWrite) lenient() bool {
	return !w.batch && !w.save && !w.forced && len(w.rows) == 1 && !w.model.column.loaded(w.single[0].expected)
}

// plain tells whether conditions stand beside an AND as they are.
func plain(exprs []clause.Expression) bool {
	for _, expr := range exprs {
		switch expr.(type) {
		case clause.Eq, clause.IN:
		default:
			return false
		}
	}
	return true
}

// writeIn writes `"table"."key" IN (...)`, or a row of keys.
func (w *versionWrite) writeKeys(stmt *gorm.Statement, table string, keys [][]any) {
	fields := w.model.schema.PrimaryFields
	if len(fields) > 1 {
		_ = stmt.WriteByte('(')
	}
	for i, field := range fields {
		if i > 0 {
			_ = stmt.WriteByte(',')
		}
		stmt.QuoteTo(&stmt.SQL, clause.Column{Table: table, Name: field.DBName})
	}
	if len(fields) > 1 {
		_ = stmt.WriteByte(')')
	}
	_, _ = stmt.WriteString(" IN (")
	for i, key := range keys {
		if i > 0 {
			_ = stmt.WriteByte(',')
		}
		if len(fields) == 1 {
			stmt.AddVar(&stmt.SQL, key[0])
			continue
		}
		_ = stmt.WriteByte('(')
		stmt.AddVar(&stmt.SQL, key...)
		_ = stmt.WriteByte(')')
	}
	_ = stmt.WriteByte(')')
}

// quoted is a name in the dialect's quotes.
func quoted(stmt *gorm.Statement, table, name string) string {
	var b strings.Builder
	stmt.QuoteTo(&b, clause.Column{Table: table, Name: name})
	return b.String()
}
