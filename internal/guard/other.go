package guard

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// refuseOther refuses a write of a model's table if the statement was given another model, and one of the two has a version or a fence. A chain
// that was used before keeps its model and its table, and so does a session of the tx of a hook. Updates can be given a form.
func refuseOther(db *gorm.DB, op Op, around *Write) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil || refuseKeptTable(db, around, true) {
		return
	}
	given := givenModel(db)
	switch {
	case given == nil:
		return
	case !isGuarded(db, given) && !isGuarded(db, stmt.Schema), op == OpUpdate && !statement.InSave():
		return
	case (given.ModelType.ConvertibleTo(stmt.Schema.ModelType) || op == OpDelete && isEmptySlice(stmt.ReflectValue)) && !hasTable(stmt, given.Table):
		return // type plain Account, or the destination of a RETURNING
	}
	fault.Add(db, errOther(stmt, stmt.Schema.Table, given.Table))
}

// refuseOtherRead does the same for a read: the structs would get the version of a row of another table. A new chain may read into anything.
func refuseOtherRead(db *gorm.DB) {
	stmt := db.Statement
	around := writeOf(stmt)
	if db.Error != nil || stmt.Schema == nil || refuseKeptTable(db, around, false) || stmt.TableExpr != nil {
		return
	}
	given := givenModel(db)
	if given == nil || !isGuarded(db, given) {
		return
	}
	inSession := around != nil || isLoaded(stmt) && statement.InHook()
	if inSession || statement.IsUsed(db) && len(stmt.Joins) == 0 && len(stmt.Selects) == 0 {
		if hasTable(stmt, given.Table) {
			fault.Add(db, errOther(stmt, stmt.Schema.Table, given.Table))
		}
	}
}

// isLoaded reports whether the model of a statement is a struct in use, and not one that only names the model.
func isLoaded(stmt *gorm.Statement) bool {
	loaded := reflect.Indirect(reflect.ValueOf(stmt.Model))
	return loaded.IsValid() && !loaded.IsZero()
}

// refuseKeptTable refuses a statement about one model that would go to the table of another model. around is the write in whose hook it is.
func refuseKeptTable(db *gorm.DB, around *Write, writes bool) bool {
	kept := keptTable(db, around, writes)
	if kept != nil {
		fault.Add(db, errOther(db.Statement, kept.Table, db.Statement.Schema.Table))
	}
	return kept != nil
}

// keptTable is the model whose table the statement has kept, although it is about another model now. It is nil if there is none, if neither of the
// two is guarded, and if the caller has named the table. A table with a schema counts as named by the caller.
func keptTable(db *gorm.DB, around *Write, writes bool) (kept *schema.Schema) {
	stmt := db.Statement
	if around != nil && around.table == stmt.TableExpr { // they come from the statement around it
		if of := around.model.Schema; stmt.Table == statement.NameInStatement(of.Table) && of.Table != stmt.Schema.Table {
			return of
		}
	}
	if stmt.TableExpr != nil {
		if of := usedBefore(stmt).of; writes && of != nil && of.Table != stmt.Schema.Table && strings.Contains(of.Table, ".") && stmt.TableExpr.SQL == stmt.Quote(of.Table) {
			return of // GORM has named it, for the previous statement
		}
		return nil
	}
	if stmt.Table == stmt.Schema.Table || stmt.Table == "" || !statement.IsUsed(db) && !statement.InSave() && !statement.InHook() {
		return nil
	}
	guarded := isGuarded(db, stmt.Schema)
	statement.EachParsed(db, func(s *schema.Schema) bool {
		if s.ModelType != stmt.Schema.ModelType && s.Table == stmt.Table && (guarded || isGuarded(db, s)) {
			kept = s
		}
		return kept == nil
	})
	return kept
}

// givenModel is the model of what the statement was given, if its table differs from the statement's.
func givenModel(db *gorm.DB) *schema.Schema {
	stmt := db.Statement
	t := reflect.TypeOf(stmt.Dest)
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || t == stmt.Schema.ModelType {
		return nil
	}
	given := &gorm.Statement{DB: db}
	if given.Parse(reflect.New(t).Interface()) != nil || given.Schema.Table == stmt.Table || given.Schema.Table == stmt.Schema.Table {
		return nil
	}
	return given.Schema
}

func isEmptySlice(given reflect.Value) bool { return given.Kind() == reflect.Slice && given.Len() == 0 }

func errOther(stmt *gorm.Statement, about, given string) error {
	if slices.Contains(stmt.BuildClauses, "DELETE") && statement.InUnlinking() {
		return errNotDeleted(given, about)
	}
	return fmt.Errorf("gormlock: nothing was executed: the statement is about %s and was given %s, by a session of the tx of a hook or a used chain: %s", about, given, newChain)
}

// errNotDeleted is the error of Association(…).Unscoped().Clear() of a belongs-to: the delete that GORM makes for the other row has the table and
// the conditions of the update before it.
func errNotDeleted(given, about string) error {
	return fmt.Errorf("gormlock: the row of %s was not deleted, because GORM makes a delete of it that fails. The foreign key in %s was set to NULL before that, "+
		"and stays so unless your transaction is rolled back: leave Unscoped out, and delete the row by itself", given, about)
}

// hasTable reports whether there is a table of this name, and not a view. A type without a name has none.
func hasTable(stmt *gorm.Statement, name string) bool {
	if name == "" || strings.Count(name, ".") > 1 {
		return false
	}
	question := "SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'f') " +
		"AND CASE WHEN strpos($1::text, '.') = 0 THEN c.relname = $1::text AND pg_table_is_visible(c.oid) ELSE n.nspname || '.' || c.relname = $1::text END)"
	switch d := dialect.Of(stmt.DB); {
	case d.IsMySQL():
		question = "SELECT EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' AND table_name = ?)"
	case d.IsSQLite():
		question = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?)"
	}
	return journal.Ask(stmt, "table", stmt.Quote(name), question, name)
}

// isGuarded reports whether a model has a version or a fence.
func isGuarded(db *gorm.DB, s *schema.Schema) bool {
	m := model.OfSchema(db, s)
	return m.Column != nil || m.Fence != nil
}
