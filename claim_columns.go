package gormlock

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// The columns that gormlock keeps: what a claim does to those of T stands here.

// writeClaimSet writes the SET clause, version and fence with it, as that of an update of rows that are not loaded.
func writeClaimSet(stmt *gorm.Statement, w *versionWrite, set clause.Set) *versionWrite {
	if w.model.column != nil {
		w.later = w.model.column.first(stmt.NowFunc())
	}
	if w.model.column == nil && w.fence == nil {
		_, _ = stmt.WriteString("SET ")
		set.Build(stmt)
		return w
	}
	stmt.Clauses[versionClause] = clause.Clause{Expression: w}
	stmt.Clauses["SET"] = clause.Clause{Name: "SET", Expression: set}
	stmt.Build("SET")
	delete(stmt.Clauses, "SET")
	delete(stmt.Clauses, versionClause)
	return w
}

// fence settles by which token the claim writes the rows: nil where the model has no fence.
func (c *claim) fence(stmt *gorm.Statement) (*fenceWrite, error) {
	intent := versionIntentOf(stmt)
	if _, err := intent.on(c.model); err != nil {
		return nil, err
	}
	guard, err := c.model.fenceOf(stmt, intent)
	if err != nil || guard == nil {
		return nil, err
	}
	for name := range c.assign {
		if stmt.Schema.LookUpField(name) != guard.field {
			continue
		}
		if guard.assigned = guard.ignored; !guard.ignored {
			return nil, c.refused(stmt, fmt.Errorf("%q is the fence, which the claim's token sets", name))
		}
	}
	return guard, nil
}

// rememberClaim puts the versions of claimed rows back when their transaction is rolled back: the rows are then at an
// earlier version, and a struct that holds the later one would overwrite what another writer makes of them. Which
// version a time or xmin had before is not known; with none the struct cannot be saved. Nor can one whose row the
// transaction had written before the claim.
func rememberClaim(query *gorm.DB, w *versionWrite, rows reflect.Value) {
	m, j := w.model, journalOf(query.Statement)
	if j == nil {
		return
	}
	keepRowsRead(query, rows)
	if m.column == nil || !w.bumps || rows.Len() == 0 && !w.lostRows {
		return
	}
	_, _ = w.memory.find(m, rows.Interface())
	claimed := make([]version, w.memory.count)
	for i := range claimed {
		row := w.memory.row(i)
		claimed[i] = m.column.read(row)
		m.column.write(row, m.column.beforeBump(claimed[i]))
	}
	w.memory.keep()
	for i := range claimed {
		m.column.write(w.memory.row(i), claimed[i])
	}
	w.memory.leave()
	j.wrote(w)
	j.record(w.undo)
}

// beforeBump is the version that a bump made v of, and none where that is not known.
func (c *versionColumn) beforeBump(v version) version {
	if c.kind != integerVersion {
		return version{null: c.shape != bareVersion}
	}
	return version{n: v.n - 1}
}
