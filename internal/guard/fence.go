package guard

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// FenceGuard allows writing a row if no later token than the statement's has been issued, and none is in the row.
type FenceGuard struct {
	*column.Fence
	token    fence.Token
	number   any   // of the token
	Ignored  bool  // IgnoreFence
	Assigned bool  // ignored, and the caller assigns the column by name
	proposed int   // rows of a create
	latest   int64 // the latest token that was issued for the key, if it was read
}

// guards reports whether a token guards the statement.
func (f *FenceGuard) guards() bool { return f != nil && !f.Ignored }

// FenceOf picks the token with which the statement writes the model, or nil if the model has no fence.
func FenceOf(m *model.Model, stmt *gorm.Statement, intent *asked.Intent) (*FenceGuard, error) {
	if m.Fence == nil {
		return nil, nil
	}
	f := &FenceGuard{Fence: m.Fence, Ignored: intent != nil && intent.IgnoreFence}
	assigned := f.assigns(stmt)
	switch {
	case f.Ignored:
		f.Assigned = assigned
		return f, nil
	case assigned:
		return nil, fmt.Errorf("gormlock: %s.%s: a write cannot assign the fence, its token does: leave it out, or use IgnoreFence", m.Schema.Name, f.Field.Name)
	case f.Topic == "" && statement.IsAssociation(stmt):
		return nil, fmt.Errorf("%w: %s: a fence without key= is not written by another model's statement, whose token may belong to another lock: "+
			"tag it `fence,key=...`, or omit the association and write it by itself", fault.ErrFenceMissing, stmt.Table)
	}
	token, err := f.TokenOf(stmt, intent.NamedTokens())
	if err != nil {
		return nil, err
	}
	f.token, f.number = token, token.Number
	if named := intent.NamedTokens(); len(named) > 0 {
		stmt.Context = fence.NewContext(stmt.Context, named...)
	}
	return f, nil
}

// assigns reports whether the statement assigns the column by name.
func (f *FenceGuard) assigns(stmt *gorm.Statement) bool {
	if statement.IsInMaps(stmt.Dest, f.Field) {
		return true
	}
	set, _ := stmt.Clauses["SET"].Expression.(clause.Set)
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	return f.isIn(set, false) || f.isIn(conflict.DoUpdates, !f.Ignored)
}

// isIn reports whether set assigns the column. If orExcluded is set, assigning the value that the create proposes does not count.
func (f *FenceGuard) isIn(set clause.Set, orExcluded bool) bool {
	for i := range set {
		from, _ := set[i].Value.(clause.Column)
		if set[i].Column.Name == f.Field.DBName && (!orExcluded || from.Table != "excluded") {
			return true
		}
	}
	return false
}

// follow gives the struct of a written row the row's new token.
func (f *FenceGuard) follow(row reflect.Value) {
	if f.guards() && row.CanAddr() {
		f.Write(row, column.Value{N: f.token.Number})
	}
}

// owns reports whether the column is the fence, and the caller does not assign it.
func (f *FenceGuard) owns(column string) bool { return !f.Assigned && column == f.Field.DBName }

// assign writes the token. If the statement must write all rows that it finds or none, the assignment fails on a row with a later token.
func (f *FenceGuard) assign(b builder, written bool) bool {
	if !f.guards() || b.draft.built.nothing {
		if !written && !b.draft.version.is() {
			fault.Add(b.DB, fmt.Errorf("gormlock: %s: IgnoreFence leaves %s as it is, and nothing else is assigned: to change it, name it in a map", b.Table, f.Field.DBName))
		}
		return written
	}
	if written {
		b.Text(",")
	}
	b.Text(f.Name, "=")
	if !statement.IsPostgres(b.DB) || !b.draft.isBulk() {
		b.Value(f.number)
		return true
	}
	name := f.In(b.Statement)
	b.Text("CASE WHEN COALESCE(", name, ",0)<=")
	b.Value(f.number)
	b.Text("::bigint THEN ")
	if b.draft.op == OpClaim {
		f.writeUnlessLater(b)
	} else {
		b.Value(f.number)
		b.Text("::bigint")
	}
	b.Text(" ELSE ('"+writtenLater+"'||", name, ")::bigint END")
	return true
}

// writeUnlessLater writes the token as a value that fails if a later one has been issued. It also fails if the token was never issued, except in a
// claim.
func (f *FenceGuard) writeUnlessLater(b builder) {
	claims, is := b.draft.op == OpClaim, "="
	if claims {
		is = "<="
	}
	b.Text("(SELECT CASE WHEN latest", is)
	b.Value(f.number)
	b.Text("::bigint THEN ")
	b.Value(f.number)
	b.Text("::bigint ELSE ('" + issuedLater + "'||COALESCE(latest,0))::bigint END FROM (SELECT ")
	if claims {
		b.Text("COALESCE(")
	}
	b.Text("(SELECT token FROM " + fence.Table + " WHERE space=")
	b.Value(f.token.Space)
	b.Text("::smallint AND id=")
	b.Value(f.token.ID)
	if claims {
		b.Text("::bigint),0)")
	} else {
		b.Text("::bigint FOR SHARE)")
	}
	b.Text(" AS latest OFFSET 0) AS gormlock_latest)")
}

// hold writes the condition that the row has no later token and that none was issued.
func (f *FenceGuard) hold(b builder) {
	if !f.guards() {
		return
	}
	if b.draft.leavesOut(b.Statement) || !b.draft.isBulk() {
		b.Text(" AND COALESCE(", f.In(b.Statement), ",0)<=")
		b.Value(f.number)
	}
	if statement.IsPostgres(b.DB) { // as in fence.Token.Guard, which leaves its parameters to the caller
		b.Text(" AND NOT EXISTS (SELECT 1 FROM " + fence.Table + " WHERE space=")
		b.Value(f.token.Space)
		b.Text("::smallint AND id=")
		b.Value(f.token.ID)
		b.Text("::bigint AND token>")
		b.Value(f.number)
		b.Text("::bigint)")
	}
}

// fenceValue is the token of a new row. It fails if a later token has been issued, and makes the issuing of a later one wait for the end of the
// transaction.
type fenceValue struct{ *draft }

// Build writes it.
func (v fenceValue) Build(to clause.Builder) {
	b := builderOf(to, v.draft)
	if statement.IsPostgres(b.DB) {
		v.fence.writeUnlessLater(b)
	} else {
		b.Value(v.fence.number)
	}
}

// insert gives every new row the token, even if Select, Omit or a map left the column out. One refused row refuses
// them all.
func (f *FenceGuard) insert(b builder, values *clause.Values) {
	f.proposed = max(1, len(values.Values))
	if !f.guards() {
		return
	}
	at := slices.IndexFunc(values.Columns, func(c clause.Column) bool { return c.Name == f.Field.DBName })
	if at < 0 {
		at = len(values.Columns)
		values.Columns = append(slices.Clone(values.Columns), clause.Column{Name: f.Field.DBName})
		if len(values.Values) == 0 {
			values.Values = [][]any{{}}
		}
		for i := range values.Values {
			values.Values[i] = append(values.Values[i], nil)
		}
	}
	for i := range values.Values {
		if i == 0 {
			values.Values[i][at] = fenceValue{b.draft}
		} else {
			values.Values[i][at] = f.number
		}
	}
}

// conflict makes an upsert update found rows only if they have no later token.
func (f *FenceGuard) conflict(b builder, found *clause.OnConflict) {
	if !f.Assigned {
		found.DoUpdates = slices.DeleteFunc(slices.Clone(found.DoUpdates), func(a clause.Assignment) bool { return a.Column.Name == f.Field.DBName })
	}
	if !f.guards() {
		return
	}
	excluded := clause.Column{Table: "excluded", Name: f.Field.DBName}
	found.DoUpdates = append(slices.Clone(found.DoUpdates), clause.Assignment{Column: clause.Column{Name: f.Field.DBName}, Value: excluded})
	guard := clause.Expr{SQL: "COALESCE(" + f.In(b.Statement) + ",0)<=" + b.proposed(f.Field.DBName)}
	found.Where.Exprs = beside(guard, found.Where.Exprs)
}
