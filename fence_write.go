package gormlock

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/fence"
)

// fenceWrite is what one statement does about the fence of its model.
type fenceWrite struct {
	*fenceColumn
	token    fence.Token
	number   any   // of the token
	ignored  bool  // IgnoreFence
	assigned bool  // ignored, and the caller assigns the column by name
	proposed int   // rows of a create
	latest   int64 // the latest token issued for the key, once it was looked for
}

// guards tells whether the statement is guarded by a token.
func (f *fenceWrite) guards() bool { return f != nil && !f.ignored }

// fenceOf settles by which token the statement writes the model; nil where the model has no fence.
func (m *versionedModel) fenceOf(stmt *gorm.Statement, intent *versionIntent) (*fenceWrite, error) {
	if m.fence == nil {
		return nil, nil
	}
	f := &fenceWrite{fenceColumn: m.fence, ignored: intent != nil && intent.ignoreFence}
	assigned := f.assigns(stmt)
	switch {
	case f.ignored:
		f.assigned = assigned
		return f, nil
	case assigned:
		return nil, fmt.Errorf("gormlock: %s.%s: a write cannot assign the fence: its token does; IgnoreFence lets it", m.schema.Name, f.field.Name)
	case f.topic == "" && isAssociation(stmt):
		return nil, fmt.Errorf("%w: %s: a bare fence is not written with another model's statement, whose token may be of another lock: "+
			"tag it `fence,key=...`, or omit the association and write it by itself", ErrFenceMissing, stmt.Table)
	}
	token, err := f.tokenOf(stmt, intent)
	if err != nil {
		return nil, err
	}
	f.token, f.number = token, token.Number
	if named := intent.namedTokens(); len(named) > 0 {
		stmt.Context = fence.NewContext(stmt.Context, named...)
	}
	return f, nil
}

// isAssociation tells whether GORM makes the statement to save an association.
func isAssociation(stmt *gorm.Statement) bool {
	_, child := stmt.Settings.Load("gorm:saved_association_map")
	return child
}

// assigns tells whether the statement assigns the column by its name.
func (f *fenceWrite) assigns(stmt *gorm.Statement) bool {
	var all []map[string]any
	switch dest := stmt.Dest.(type) {
	case map[string]any:
		all = []map[string]any{dest}
	case *map[string]any:
		all = []map[string]any{*dest}
	case []map[string]any:
		all = dest
	case *[]map[string]any:
		all = *dest
	}
	for _, values := range all {
		if _, named := values[f.field.DBName]; named {
			return true
		}
		if _, named := values[f.field.Name]; named {
			return true
		}
	}
	set, _ := stmt.Clauses["SET"].Expression.(clause.Set)
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	return f.isIn(set, false) || f.isIn(conflict.DoUpdates, !f.ignored)
}

// isIn tells whether set assigns the column: other than from the row of the create, where that is what it may be.
func (f *fenceWrite) isIn(set clause.Set, orExcluded bool) bool {
	for i := range set {
		from, _ := set[i].Value.(clause.Column)
		if set[i].Column.Name == f.field.DBName && (!orExcluded || from.Table != "excluded") {
			return true
		}
	}
	return false
}

// follow gives the struct of a row that was written the token the row has now.
func (f *fenceWrite) follow(row reflect.Value) {
	if f.guards() && row.CanAddr() {
		f.write(row, version{n: f.token.Number})
	}
}

// bulk tells whether the statement is about rows that no struct stands for.
func (w *versionWrite) bulk() bool { return len(w.rows) == 0 }

// everywhere gives a statement about all rows of its table, which the caller allows, conditions beside which the guard
// can stand.
func (w *versionWrite) everywhere(stmt *gorm.Statement) {
	if !w.fence.guards() || !stmt.AllowGlobalUpdate || !w.bulk() {
		return
	}
	if _, has := stmt.Clauses["WHERE"]; !has {
		stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "1=1"}}})
	}
}

// leavesOut tells whether a statement about many rows can pass over those with a later token, so that they must be looked
// for: where no assignment fails on them.
func (w *versionWrite) leavesOut(stmt *gorm.Statement) bool {
	return w.fence.guards() && w.bulk() && (!w.set || !isPostgres(stmt.DB))
}

// mayLeaveOut tells before the statement is built whether that can be.
func (w *versionWrite) mayLeaveOut(stmt *gorm.Statement) bool {
	return w.fence.guards() && (w.op == opDelete || !isPostgres(stmt.DB)) && (w.memory.count == 0 || !w.hasKey(w.memory.row(0)))
}
