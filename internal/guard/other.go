package guard

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// refuseOther refuses to create, save or delete structs by a statement about the table of another model, if one of the two models has a version
// or a fence. A chain that was used before keeps its model, and GORM would write the table of that one. What Updates is given may be a form.
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
	switch {
	case given.Parse(reflect.New(t).Interface()) != nil || given.Schema.Table == stmt.Table:
		return
	case !isGuarded(db, given.Schema) && !isGuarded(db, stmt.Schema), op == OpUpdate && !statement.InSave():
		return
	case t.ConvertibleTo(stmt.Schema.ModelType) && !hasTable(stmt, given.Schema.Table): // type plain Account
		return
	}
	fault.Add(db, fmt.Errorf("gormlock: nothing was executed: the statement is about %s and was given %s: a chain that was used before keeps its model, "+
		"so begin each statement from a chain, as the db of db.Connection is one, with Session(&gorm.Session{NewDB: true})", stmt.Schema.Table, given.Schema.Table))
}

// hasTable reports whether there is a table of this name.
func hasTable(stmt *gorm.Statement, name string) bool {
	question, of := "SELECT to_regclass($1) IS NOT NULL", stmt.Quote(name)
	switch d := dialect.Of(stmt.DB); {
	case d.IsMySQL():
		question, of = "SELECT EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?)", name
	case d.IsSQLite():
		question, of = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type IN ('table', 'view') AND name = ?)", name
	}
	return askTable(stmt, "table", stmt.Quote(name), question, of)
}

// isGuarded reports whether a model has a version or a fence.
func isGuarded(db *gorm.DB, s *schema.Schema) bool {
	m := model.OfSchema(db, s)
	return m.Column != nil || m.Fence != nil
}
