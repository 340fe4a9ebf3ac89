package gormlock

import (
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/fence"
)

// withoutFence is set without what it assigns to the fence: the token is added by writeFence. A column that the caller of
// IgnoreFence names stays.
func (f *fenceWrite) withoutFence(set clause.Set) clause.Set {
	if f == nil || f.assigned {
		return set
	}
	for i := range set {
		if set[i].Column.Name == f.field.DBName {
			return slices.Delete(slices.Clone(set), i, i+1)
		}
	}
	return set
}

// leaves tells whether the column is the fence, and not one that the statement assigns as its caller says.
func (f *fenceWrite) leaves(column string) bool {
	return f != nil && !f.assigned && column == f.field.DBName
}

// refuseNothing fails a statement that would assign the fence alone, from a struct, without a token.
func (f *fenceWrite) refuseNothing(stmt *gorm.Statement, written bool) {
	if !written {
		fail(stmt.DB, fmt.Errorf("gormlock: %s: IgnoreFence leaves %s as it is, and nothing else is assigned: to change it name it in a map", stmt.Table, f.field.DBName))
	}
}

// writeFence writes the assignment of the token. A statement about many rows is one that must write all it finds or
// none: assigning fails on a row that was written with a later token.
func (w *versionWrite) writeFence(stmt *gorm.Statement) {
	f := w.fence
	write := func(text string) { _, _ = stmt.WriteString(text) }
	write(f.name)
	write("=")
	if !isPostgres(stmt.DB) || !w.bulk() {
		w.add(stmt, f.number)
		return
	}
	column := f.in(stmt)
	write("CASE WHEN COALESCE(" + column + ",0)<=")
	w.add(stmt, f.number)
	write("::bigint THEN ")
	if w.op == opClaim {
		f.writeUnlessLater(w, stmt)
	} else {
		w.add(stmt, f.number)
		write("::bigint")
	}
	write(" ELSE ('" + writtenLater + "'||" + column + ")::bigint END")
}

// writeUnlessLater writes the token as a value that fails once a later one has been issued.
func (f *fenceWrite) writeUnlessLater(w *versionWrite, stmt *gorm.Statement) {
	write := func(text string) { _, _ = stmt.WriteString(text) }
	write("(SELECT CASE WHEN latest<=")
	w.add(stmt, f.number)
	write("::bigint THEN ")
	w.add(stmt, f.number)
	write("::bigint ELSE ('" + issuedLater + "'||COALESCE(latest,0))::bigint END FROM (SELECT ")
	if w.op == opClaim {
		write("COALESCE(")
	}
	write("(SELECT token FROM " + fence.Table + " WHERE space=")
	w.add(stmt, f.token.Space)
	write("::smallint AND id=")
	w.add(stmt, f.token.ID)
	if w.op == opClaim {
		write("::bigint),0)")
	} else {
		write("::bigint FOR SHARE)")
	}
	write(" AS latest OFFSET 0) AS gormlock_latest)")
}

// writeGuard writes what must hold for a row to be written: no later token is in it, and none has been issued.
func (w *versionWrite) writeGuard(stmt *gorm.Statement) {
	f := w.fence
	if w.leavesOut(stmt) || !w.bulk() {
		_, _ = stmt.WriteString(" AND COALESCE(")
		_, _ = stmt.WriteString(f.in(stmt))
		_, _ = stmt.WriteString(",0)<=")
		w.add(stmt, f.number)
	}
	if isPostgres(stmt.DB) { // as fence.Token.Guard, which leaves its parameters to the caller
		_, _ = stmt.WriteString(" AND NOT EXISTS (SELECT 1 FROM " + fence.Table + " WHERE space=")
		w.add(stmt, f.token.Space)
		_, _ = stmt.WriteString("::smallint AND id=")
		w.add(stmt, f.token.ID)
		_, _ = stmt.WriteString("::bigint AND token>")
		w.add(stmt, f.number)
		_, _ = stmt.WriteString("::bigint)")
	}
}

// fenceValue is the token of a new row: a value that fails once a later one has been issued, and that makes a later one
// wait until the transaction has ended.
type fenceValue struct{ w *versionWrite }

// Build writes it.
func (v fenceValue) Build(builder clause.Builder) {
	stmt := builder.(*gorm.Statement) //nolint:forcetypeassert // buildValues got it
	if isPostgres(stmt.DB) {
		v.w.fence.writeUnlessLater(v.w, stmt)
	} else {
		v.w.add(stmt, v.w.fence.number)
	}
}

// fenceValues gives every new row the token: also where the column was left out by Select or Omit, or by a map. The
// first one is enough to refuse them all.
func (w *versionWrite) fenceValues(values *clause.Values) {
	f := w.fence
	f.proposed = max(1, len(values.Values))
	if !f.guards() {
		return
	}
	at := slices.IndexFunc(values.Columns, func(c clause.Column) bool { return c.Name == f.field.DBName })
	if at < 0 {
		at = len(values.Columns)
		values.Columns = append(slices.Clone(values.Columns), clause.Column{Name: f.field.DBName})
		if len(values.Values) == 0 {
			values.Values = [][]any{{}}
		}
		for i := range values.Values {
			values.Values[i] = append(values.Values[i], nil)
		}
	}
	for i := range values.Values {
		if i == 0 {
			values.Values[i][at] = fenceValue{w}
		} else {
			values.Values[i][at] = f.number
		}
	}
}

// fenceConflict lets rows that an upsert finds be updated where they have no later token.
func (w *versionWrite) fenceConflict(conflict *clause.OnConflict, stmt *gorm.Statement) {
	f := w.fence
	conflict.DoUpdates = f.withoutFence(conflict.DoUpdates)
	if !f.guards() {
		return
	}
	excluded := clause.Column{Table: "excluded", Name: f.field.DBName}
	conflict.DoUpdates = append(slices.Clone(conflict.DoUpdates), clause.Assignment{Column: clause.Column{Name: f.field.DBName}, Value: excluded})
	guard := clause.Expr{SQL: "COALESCE(" + f.in(stmt) + ",0)<=" + quoted(stmt, "excluded", f.field.DBName)}
	own := conflict.Where.Exprs
	conflict.Where.Exprs = []clause.Expression{guard}
	if len(own) > 0 {
		conflict.Where.Exprs = append(conflict.Where.Exprs, inBrackets(own))
	}
}
