package guard

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// holds reports whether two structs hold the same value in a field.
func holds(row reflect.Value, field *schema.Field, other reflect.Value) bool {
	a, b := statement.Place(field, row), statement.Place(field, other)
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// Absent is the error of a save whose row was not found: it is gone, or the conditions of the call exclude it.
func Absent(db *gorm.DB, m *model.Model, row reflect.Value, key []any) error {
	j := savedRow(m, row, key)
	now, err := j.look(db, [][]any{key})
	if err != nil {
		return j.unlooked(db.Statement, &j.rows[0], err)
	}
	if now[0].isLive() {
		return j.conditionsOf(db.Statement, key)
	}
	e := j.stale(db.Statement, &j.rows[0], nil, true)
	e.Soft, e.Hidden = now[0].deleted, j.mayBeHidden()
	return e.Err()
}

// Changed is the error of a save whose row, according to the server, was changed since the snapshot.
func Changed(db *gorm.DB, m *model.Model, row reflect.Value, key []any, cause error) error {
	j := savedRow(m, row, key)
	e := j.staleError(db.Statement, &j.rows[0])
	e.Cause = cause
	return e.Err()
}

// Overtaken is the error of a write if the server refuses to lock its rows: another transaction has changed one of them since the snapshot.
func Overtaken(db *gorm.DB, m *model.Model, op Op, keys [][]any, cause error) error {
	e := &fault.Stale{Table: m.Table, Op: op.String(), PrimaryKey: map[string]any{}, Cause: cause}
	if len(keys) == 1 {
		for i, field := range m.Schema.PrimaryFields {
			e.PrimaryKey[field.DBName] = keys[0][i]
			e.Keys = append(e.Keys, field.DBName)
		}
	}
	err := e.Err()
	install.Of(db).TellRefused(db.Statement.Context, err)
	return err
}

// savedRow is the judge of a save of one row that is not written.
func savedRow(m *model.Model, row reflect.Value, key []any) *judge {
	j := &judge{}
	j.model, j.op, j.version.Version, j.version.checked = m, OpSave, m.Column, m.Column != nil
	j.rows = j.single[:]
	j.rows[0] = Row{Struct: row, Key: key, name: statement.KeyName(key)}
	if m.Column != nil {
		j.rows[0].Expected = m.Column.Read(row)
	}
	return j
}
