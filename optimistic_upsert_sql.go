package gormlock

import (
	"slices"
	"strconv"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// buildOnConflict lets the conflicting rows be updated where their version is the one expected, and bumps it.
func (w *versionWrite) buildOnConflict(c clause.Clause, stmt *gorm.Statement) bool {
	conflict, ok := c.Expression.(clause.OnConflict)
	versions := w.upsert != nil && w.model.column != nil && w.model.column.kind != systemVersion
	if !ok || conflict.DoNothing || !versions && w.fence == nil {
		return false
	}
	if versions {
		w.versionConflict(&conflict)
	}
	if w.fence != nil {
		w.fenceConflict(&conflict, stmt)
	}
	c.Expression = conflict
	c.Build(stmt)
	return true
}

func (w *versionWrite) versionConflict(conflict *clause.OnConflict) {
	name := w.model.column.field.DBName
	set := slices.DeleteFunc(slices.Clone(conflict.DoUpdates), func(a clause.Assignment) bool { return a.Column.Name == name })
	bump := clause.Assignment{Column: clause.Column{Name: name}, Value: upsertBump{w, set}}
	conflict.DoUpdates = append(slices.Clone(set), bump)
	if w.checked || w.upsert.links {
		own := conflict.Where.Exprs
		conflict.Where.Exprs = []clause.Expression{upsertGuard{w, set}}
		if len(own) > 0 {
			conflict.Where.Exprs = append(conflict.Where.Exprs, inBrackets(own))
		}
	}
}

// computesColumn tells whether an upsert assigns to the column something else than the value of the row proposed.
func computesColumn(set clause.Set, column string) bool {
	for i := range set {
		from, proposed := set[i].Value.(clause.Column)
		if set[i].Column.Name == column && (!proposed || from.Table != "excluded" || from.Name != column) {
			return true
		}
	}
	return false
}

// upsertBump is the version of a row that an upsert found. It is never the first version, so that a row that comes
// back with that one was inserted.
type upsertBump struct {
	w   *versionWrite
	set clause.Set
}

// Build writes it.
func (b upsertBump) Build(builder clause.Builder) {
	stmt := builder.(*gorm.Statement) //nolint:forcetypeassert // buildOnConflict got it
	w := b.w
	column, text := w.model.column, w.model.in(stmt)
	if w.intent.preserves() {
		_, _ = stmt.WriteString(text.column)
		return
	}
	if w.upsert.links {
		_, _ = stmt.WriteString("CASE WHEN ")
		linksDiffer(stmt, b.set, " IS DISTINCT FROM ", " OR ")
		_, _ = stmt.WriteString(" THEN ")
		defer func() {
			_, _ = stmt.WriteString(" ELSE ")
			_, _ = stmt.WriteString(text.column)
			_, _ = stmt.WriteString(" END")
		}()
	}
	if column.kind == temporalVersion {
		w.add(stmt, w.later.time())
		return
	}
	first := strconv.FormatInt(column.initial, 10)
	_, _ = stmt.WriteString("CASE WHEN " + text.column + ">" + first + " THEN " + text.column + "+1 ELSE " + first + "+1 END")
}

// linksDiffer writes a comparison of each foreign key that is set with the one the row has.
func linksDiffer(stmt *gorm.Statement, set clause.Set, operator, between string) {
	_ = stmt.WriteByte('(')
	for i, assignment := range set {
		if i > 0 {
			_, _ = stmt.WriteString(between)
		}
		_, _ = stmt.WriteString(quoted(stmt, stmt.Table, assignment.Column.Name))
		_, _ = stmt.WriteString(operator)
		stmt.AddVar(&stmt.SQL, assignment.Value)
	}
	_ = stmt.WriteByte(')')
}

// upsertGuard is what must hold of a row that an upsert found. It differs by what stands for it in the batch.
type upsertGuard struct {
	w   *versionWrite
	set clause.Set
}

// Build writes it.
func (g upsertGuard) Build(builder clause.Builder) {
	stmt := builder.(*gorm.Statement) //nolint:forcetypeassert // buildOnConflict got it
	w, u := g.w, g.w.upsert
	stays := func(i int) bool { return u.guarded[i] && u.links && !u.moves[i] }
	moves := func(i int) bool { return u.guarded[i] && !stays(i) }
	unloaded := func(i int) bool { return u.unloaded[i] }
	known := func(i int) bool { return u.guarded[i] || u.unloaded[i] }

	_ = stmt.WriteByte('(')
	defer func() { _ = stmt.WriteByte(')') }()
	current, matches := g.current(stmt), g.matches(stmt)
	if len(w.keysWhere(moves)) == len(w.rows) {
		_, _ = stmt.WriteString(matches)
		return
	}
	unset := current + " IS NULL"
	if w.model.column.kind == integerVersion {
		unset = current + "=0"
	}
	between := ""
	for _, part := range []struct {
		keys [][]any
		cond func()
	}{
		{w.keysWhere(moves), func() { _, _ = stmt.WriteString(matches) }},
		{w.keysWhere(stays), func() {
			_ = stmt.WriteByte('(')
			linksDiffer(stmt, g.set, " IS NOT DISTINCT FROM ", " AND ")
			_, _ = stmt.WriteString(" OR " + matches + ")")
		}},
		{w.keysWhere(unloaded), func() { _, _ = stmt.WriteString(unset) }},
	} {
		if len(part.keys) == 0 {
			continue
		}
		_, _ = stmt.WriteString(between)
		part.cond()
		_, _ = stmt.WriteString(" AND ")
		w.writeKeys(stmt, "excluded", part.keys)
		between = " OR "
	}
	switch keys := w.keysWhere(known); len(keys) {
	case len(w.rows):
	case 0:
		_, _ = stmt.WriteString("1=1")
	default:
		_, _ = stmt.WriteString(between + "NOT (")
		w.writeKeys(stmt, "excluded", keys)
		_ = stmt.WriteByte(')')
	}
}

// current is the version the row has, as a number where it is NULL.
func (g upsertGuard) current(stmt *gorm.Statement) string {
	column := g.w.model.in(stmt).column
	if g.w.model.column.kind == integerVersion {
		return "COALESCE(" + column + ",0)"
	}
	return column
}

// matches says that the row is the one meant, at the version expected.
func (g upsertGuard) matches(stmt *gorm.Statement) string {
	text := "(" + g.current(stmt) + "=" + quoted(stmt, "excluded", g.w.model.column.field.DBName)
	for _, field := range g.w.model.schema.PrimaryFields {
		text += " AND " + quoted(stmt, stmt.Table, field.DBName) + "=" + quoted(stmt, "excluded", field.DBName)
	}
	return text + ")"
}

func (w *versionWrite) keysWhere(is func(int) bool) [][]any {
	var keys [][]any
	for i := range w.rows {
		if is(i) {
			keys = append(keys, w.rows[i].key)
		}
	}
	return keys
}

// inBrackets is conditions of the caller's that hold beside others, whatever OR is among them.
type inBrackets []clause.Expression

// Build writes them.
func (b inBrackets) Build(builder clause.Builder) {
	_ = builder.WriteByte('(')
	clause.Where{Exprs: b}.Build(builder)
	_ = builder.WriteByte(')')
}
