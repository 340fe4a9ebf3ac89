package guard

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// refuseOther refuses to create, save or delete structs of a model, where one of both has a version or a fence, by a statement about another table:
// a chain that was used before keeps the model of that statement, and GORM would write its table. What Updates is given may be a form.
func refuseOther(db *gorm.DB, op Op) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil {
		return
	}
	t := reflect.TypeOf(stmt.Dest)
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || t == stmt.Schema.ModelType {
		return
	}
	given := &gorm.Statement{DB: db}
	if t.ConvertibleTo(stmt.Schema.ModelType) || given.Parse(reflect.New(t).Interface()) != nil || given.Schema.Table == stmt.Table || !isGuarded(db, given.Schema) && !isGuarded(db, stmt.Schema) || op == OpUpdate && !statement.InSave() {
		return
	}
	fault.Add(db, fmt.Errorf("gormlock: nothing was executed: the statement is about %s and was given %s: a chain that was used before keeps its model, "+
		"so begin each statement from a chain, as the db of db.Connection is one, with Session(&gorm.Session{NewDB: true})", stmt.Schema.Table, given.Schema.Table))
}

// isGuarded reports whether a model has a version or a fence.
func isGuarded(db *gorm.DB, s *schema.Schema) bool {
	m := model.OfSchema(db, s)
	return m.Column != nil || m.Fence != nil
}
