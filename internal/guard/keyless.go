package guard

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// refuseKeyless refuses an update or a delete of structs whose keys were taken away because their rows were never committed. GORM would write all
// rows that the conditions find. An update may take its values from such a struct if another one has the key.
func (w *Write) refuseKeyless(db *gorm.DB) {
	stmt := db.Statement
	if !memory.HasKeyless() || db.Error != nil {
		return
	}
	if w.hasKeyless(stmt.Model) || (w.op == OpDelete || !w.hasKeys(stmt)) && w.hasKeyless(stmt.Dest) {
		fault.Add(db, w.keyless(stmt))
	}
}

// hasKeyless reports whether value is or holds such a struct.
func (p *plan) hasKeyless(value any) (found bool) {
	statement.EachStruct(reflect.ValueOf(value), func(row reflect.Value) {
		found = found || row.Type() == p.model.Schema.ModelType && memory.IsKeyless(row)
	})
	return found
}

func (p *plan) keyless(stmt *gorm.Statement) error {
	kind := fault.ErrVersionMissing
	if !p.version.is() {
		kind = gorm.ErrPrimaryKeyRequired
	}
	return fmt.Errorf("%w: %s: nothing was written: the struct has no key, because its row was never committed, and the conditions may find other rows: "+
		"Create it again, or name the model by an empty struct", kind, statement.TableName(stmt))
}

// saveAnew creates a struct that Save takes for a row because it still has the key of one that was never committed: the ctx of its transaction has
// ended. It reports true if it has done so: then nothing is left for the update, and endSave gives it the result.
func saveAnew(db *gorm.DB) bool {
	stmt := db.Statement
	if len(stmt.Selects) == 0 || db.Error != nil || db.DryRun || stmt.Schema == nil || stmt.ReflectValue.Kind() != reflect.Struct || !memory.IsStray(stmt.ReflectValue) {
		return false
	}
	m := model.Of(db)
	if m == nil || m.Err != nil || stmt.ReflectValue.Type() != m.Schema.ModelType || !statement.SamePointer(stmt.Model, stmt.Dest) || !statement.InSave() {
		return false
	}
	if memory.Recover(m, stmt.ReflectValue); !memory.IsKeyless(stmt.ReflectValue) {
		return false
	}
	create := db.Session(&gorm.Session{Initialized: true})
	create.Statement.BuildClauses = nil // they are the update's
	if slices.Equal(create.Statement.Selects, []string{"*"}) {
		create.Statement.Selects = nil
	}
	create = create.Callback().Create().Execute(create)
	db.RowsAffected = create.RowsAffected
	db.Error = &savedByKeyError{create.Error}
	return true
}
