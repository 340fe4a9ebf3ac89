package statement

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/clause"
)

// Assignments are what an update will SET: GORM computes it from Select, Omit and the values of the statement. The
// statement and its structs are not changed.
func Assignments(stmt *gorm.Statement) clause.Set {
	if c, own := stmt.Clauses["SET"]; own {
		set, _ := c.Expression.(clause.Set)
		return set
	}
	dest := reflect.ValueOf(stmt.Dest)
	for dest.Kind() == reflect.Pointer {
		dest = dest.Elem()
	}
	if _, isMap := destOf(dest).(map[string]any); !isMap && dest.Kind() != reflect.Struct {
		return nil // GORM refuses it
	}
	// This statement has no ReflectValue, so GORM does not write the assignments into a struct.
	return callbacks.ConvertToAssignments(&gorm.Statement{
		DB: stmt.DB, Schema: stmt.Schema, Table: stmt.Table, TableExpr: stmt.TableExpr, Model: stmt.Model, Dest: stmt.Dest, Context: stmt.Context,
		Selects: stmt.Selects, Omits: stmt.Omits, SkipHooks: stmt.SkipHooks, Clauses: map[string]clause.Clause{},
	})
}

func destOf(dest reflect.Value) any {
	if !dest.IsValid() || !dest.CanInterface() {
		return nil
	}
	return dest.Interface()
}
