package guard

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// passedOn is what tx.WithContext and tx.Session, in a hook, carry on with besides the table of the statement whose hook it is.
type passedOn struct {
	model any
	what  string // passesNothing, or what its caller has said besides
}

// What sessions carry on with.
const (
	passesNothing    = ""
	passesModel      = "the struct"
	passesConditions = "the conditions"
	passesClauses    = "the clauses of gormlock"
	passesUnscoped   = "the Unscoped"
	passesSelection  = "the Select or Omit"
	passesConflict   = "the ON CONFLICT"
	passesAll        = "all columns, as Save selects them,"
)

// passedOnBy is what sessions in the hooks of a statement that begins would carry on with. Tokens of a fence are welcome there.
func passedOnBy(stmt *gorm.Statement, intent *Intent) passedOn {
	_, where := stmt.Clauses["WHERE"]
	_, limit := stmt.Clauses["LIMIT"]
	_, conflict := stmt.Clauses["ON CONFLICT"]
	what := passesNothing
	switch {
	case intent != nil && (intent.AsksVersion() || intent.ignoreFence):
		what = passesClauses
	case where, limit, len(stmt.Joins) > 0:
		what = passesConditions
	case stmt.Unscoped:
		what = passesUnscoped
	case len(stmt.Omits) > 0, len(stmt.Selects) > 1, len(stmt.Selects) == 1 && stmt.Selects[0] != "*":
		what = passesSelection
	case conflict:
		what = passesConflict
	case len(stmt.Selects) == 1:
		what = passesAll
	}
	return passedOn{stmt.Model, what}
}

// refuseSession refuses a write that would be about something else than its caller sees, because it carries on with a statement before it.
func refuseSession(db *gorm.DB, op Op) {
	around := leaveRunning(db.Statement)
	refuseOther(db, op, around)
	if db.Error != nil || around == nil {
		return
	}
	if what := around.passes.to(db.Statement, op); what != passesNothing {
		fault.Add(db, fmt.Errorf("gormlock: nothing was executed: in a hook, tx.WithContext and tx.Session carry on with %s of the statement whose hook it is: "+
			"use tx itself, or tx.Session(&gorm.Session{NewDB: true})", what))
	}
}

// to is what makes of a write another one than its caller has said: that it leaves out rows or columns, or writes more.
func (p passedOn) to(stmt *gorm.Statement, op Op) string {
	ofAnother := isSame(stmt.Model, p.model) && !isSame(stmt.Dest, p.model) && isStruct(stmt.Dest)
	switch {
	case p.what == passesConflict && op == OpCreate, p.what == passesAll && op == OpUpdate && isStruct(stmt.Dest) && !statement.InSave():
		return p.what
	case p.what != passesNothing && p.what != passesConflict && p.what != passesAll:
		return p.what
	case op != OpCreate && ofAnother:
		return passesModel
	}
	return passesNothing
}

// isSame reports whether two values are one, of structs that a pointer or a slice leads to.
func isSame(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return statement.SamePointer(a, b) || x.Kind() == reflect.Slice && y.Kind() == reflect.Slice && x.Type() == y.Type() && x.Pointer() == y.Pointer()
}

// isStruct reports whether a statement is given structs, and not the values of a map.
func isStruct(value any) bool {
	t := reflect.TypeOf(value)
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		t = t.Elem()
	}
	return t != nil && t.Kind() == reflect.Struct
}
