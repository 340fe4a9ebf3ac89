package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// SaveByKey handles a Save that GORM turned into a create. GORM creates a struct with a zero in its key, but a part of a composite key can be zero.
// So SaveByKey makes it an update again, or an INSERT if there is no row and the struct was not read. It reports true if it has done so: then
// nothing is left for the create, and endSave gives it the result. If the model has no version and there is no row, the create goes on.
func SaveByKey(db *gorm.DB) bool {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil || len(stmt.Schema.PrimaryFields) < 2 || stmt.ReflectValue.Kind() != reflect.Struct {
		return false
	}
	m := model.Of(db)
	if m == nil || m.Err != nil || m.Column == nil && m.Fence == nil && asked.Of(stmt).Columns() == nil || stmt.ReflectValue.Type() != m.Schema.ModelType {
		return false
	}
	key, whole := statement.KeyOf(stmt, m.Schema, stmt.ReflectValue)
	if _, decided := stmt.Clauses["ON CONFLICT"]; decided || key == nil || whole || lacksGenerated(m.Schema, stmt.ReflectValue) || !statement.InSave() {
		return false
	}
	if m.Column == nil && asked.Of(stmt).Columns() == nil {
		there, err := isThere(db, m, key)
		if err != nil {
			fault.Add(db, err)
		}
		if err != nil || !there {
			return false
		}
	}
	saved := statement.SaveByKey(db)
	if m.Column == nil && saved.Error == nil && saved.RowsAffected == 0 && !db.DryRun {
		stmt.SkipHooks = true // the row was deleted meanwhile: treated as in GORM's Save when it creates what it did not find
		return false
	}
	db.RowsAffected = saved.RowsAffected
	db.Error = &savedByKeyError{saved.Error}
	journal.AtWork(db) // the end of the create is still to come
	return true
}

// isThere reports whether there is a row with this key.
func isThere(db *gorm.DB, m *model.Model, key []any) (bool, error) {
	if db.DryRun {
		return true, nil
	}
	found, err := Rows(db, m, slices.Clone(m.Schema.PrimaryFieldDBNames), true, false, KeyIn(m.Schema, [][]any{key}))
	return len(found) > 0, err
}

// endSave ends the create whose struct SaveByKey has saved.
func endSave(db *gorm.DB) {
	if saved, ok := db.Error.(*savedByKeyError); ok { //nolint:errorlint // an error that others have wrapped stays
		db.Error = saved.err
	}
}

// savedByKeyError keeps GORM from creating a struct that is saved already.
type savedByKeyError struct{ err error }

func (s *savedByKeyError) Error() string {
	if s.err != nil {
		return s.err.Error()
	}
	return "gormlock: it is saved by its key, there is nothing to create"
}

// Unwrap returns the result of the save.
func (s *savedByKeyError) Unwrap() error { return s.err }
