package guard

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/operation"
	"github.com/gormlock/gormlock/internal/statement"
)

// passedOn is what tx.WithContext and tx.Session in a hook carry on with, besides the table of the hook's statement.
type passedOn struct {
	model    any
	always   string // what changes any write
	conflict bool   // an ON CONFLICT
	all      bool   // Save selects all columns
	leftOut  bool   // the Omit of associations
}

// passedOnBy is what sessions in the hooks of a statement that begins would carry on with. Tokens of a fence may be carried on.
func passedOnBy(stmt *gorm.Statement, intent *asked.Intent) passedOn {
	_, where := stmt.Clauses["WHERE"]
	_, limit := stmt.Clauses["LIMIT"]
	p := passedOn{model: stmt.Model, all: slices.Contains(stmt.Selects, "*"), leftOut: slices.Equal(stmt.Omits, []string{clause.Associations})}
	_, p.conflict = stmt.Clauses["ON CONFLICT"]
	switch {
	case intent.AsksVersion() || intent.IgnoresFence():
		p.always = "the clauses of gormlock"
	case where, limit, len(stmt.Joins) > 0:
		p.always = "the conditions"
	case stmt.Unscoped:
		p.always = "the Unscoped"
	case len(stmt.Omits) > 0 && !p.leftOut, len(stmt.Selects) > 0 && !p.all:
		p.always = "the Select or Omit"
	}
	return p
}

// refuseSession refuses a write that would do something else than its caller sees, because it carries on with an earlier statement.
func refuseSession(db *gorm.DB, op Op) {
	operation.Refuse(db)
	around := leaveRunning(db.Statement)
	refuseOther(db, op, around)
	if db.Error != nil || around == nil {
		return
	}
	what := around.passes.to(db.Statement, op)
	if what == "" && around.table != db.Statement.TableExpr && !isStruct(db.Statement.Dest) && statement.IsSame(db.Statement.Model, around.passes.model) {
		what = "the model, whatever Table names,"
	}
	if what != "" {
		fault.Add(db, errPassedOn(what))
	}
}

func errPassedOn(what string) error {
	return fmt.Errorf("gormlock: nothing was executed: in a hook, tx.WithContext and tx.Session carry on with %s of the statement whose hook it is: "+
		"use tx itself, or tx.Session(&gorm.Session{NewDB: true})", what)
}

// to says what changes a write: that it leaves out rows or columns, or writes more.
func (p passedOn) to(stmt *gorm.Statement, op Op) string {
	structs := isStruct(stmt.Dest)
	switch {
	case p.always != "":
		return p.always
	case p.conflict && op == OpCreate:
		return "the ON CONFLICT"
	case p.all && op == OpUpdate && structs && !statement.IsSame(stmt.Dest, p.model) && !statement.InSave():
		return "all columns, as Save selects them,"
	case p.leftOut && op != OpDelete && structs && statement.HasRelations(stmt.Schema):
		return "the Omit of associations"
	case op != OpCreate && structs && statement.IsSame(stmt.Model, p.model) && !statement.IsSame(stmt.Dest, p.model):
		return "the struct"
	}
	return ""
}

// isStruct reports whether a statement is given structs, and not the values of a map.
func isStruct(value any) bool {
	t := reflect.TypeOf(value)
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		t = t.Elem()
	}
	return t != nil && t.Kind() == reflect.Struct
}
