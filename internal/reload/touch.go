package reload

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/absent"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/statement"
)

// Touch moves the version of a row forward. A missing row is an error, even if the version is not compared. If there are conditions, a row that
// they exclude, or that is at another version, counts as missing.
func Touch(db *gorm.DB, value any, conditions ...clause.Expression) error {
	m, row, err := versionedStruct(db, value, "Touch")
	if err != nil {
		return err
	}
	key, _ := statement.KeyOf(&gorm.Statement{Context: db.Statement.Context}, m.Schema, row)
	if key == nil {
		return fmt.Errorf("gormlock: Touch: %s has no primary key: %w", m.Schema.Name, gorm.ErrPrimaryKeyRequired)
	}
	return touch(db, m, value, key, conditions)
}

// TouchKey moves the version of the row with this key, whatever version it is at. The key may consist of zeros. row points to an empty
// struct.
func TouchKey(db *gorm.DB, row any, key []any, conditions ...clause.Expression) error {
	m, empty, err := versionedStruct(db, row, "Touch")
	if err != nil {
		return err
	}
	for i, field := range m.Schema.PrimaryFields {
		key[i] = asPointer(field, key[i])
		if err := field.Set(db.Statement.Context, empty, key[i]); err != nil {
			return err
		}
	}
	if m.Column.IsTemporal() {
		if err := lockVersion(db, m, row, key, conditions); err != nil {
			return err
		}
		if conditions = nil; m.Column.Loaded(m.Column.Read(empty)) {
			return touch(db, m, row, key, nil)
		}
	}
	return touch(db.Clauses(guard.IgnoreVersion()), m, row, key, conditions)
}

// asPointer is a part of a key as a pointer, if its field is one: methods that send and read the value may be on the pointer type.
func asPointer(field *schema.Field, value any) any {
	part := reflect.ValueOf(value)
	if !part.IsValid() || field.FieldType.Kind() != reflect.Pointer || part.Type() != field.FieldType.Elem() {
		return value
	}
	pointer := reflect.New(part.Type())
	pointer.Elem().Set(part)
	return pointer.Interface()
}

// lockVersion locks a row and reads its version, for versions that are times. From the new number one can compute the old one, but not from a
// new time. It is needed because structs at the old version get the new one.
func lockVersion(db *gorm.DB, m *model.Model, row any, key []any, conditions []clause.Expression) error {
	names := append(slices.Clip(m.Schema.PrimaryFieldDBNames), m.Column.Field.DBName)
	r := rowToLock{schema: m.Schema, key: key}
	query := statement.Beside(db).Session(&gorm.Session{SkipHooks: true}).Model(row).Select(names).Scopes(mark.Narrow(append(r.isKey(), conditions...)...))
	if speaks := dialect.Of(db); speaks.LocksRows() {
		query = query.Clauses(clause.Locking{Strength: speaks.Strength("NO KEY UPDATE")})
	}
	query = query.Limit(1).Find(row)
	switch {
	case sqlstate.Of(query.Error) == sqlstate.SerializationFailure:
		return guard.Overtaken(query, m, guard.OpTouch, [][]any{key}, query.Error)
	case query.Error == nil && query.RowsAffected == 0:
		r.table = statement.TableName(query.Statement)
		return fmt.Errorf("gormlock: touch %s: %w", r, gorm.ErrRecordNotFound)
	}
	return query.Error
}

func touch(db *gorm.DB, m *model.Model, value any, key []any, conditions []clause.Expression) error {
	tx := statement.Beside(db)
	if len(conditions) > 0 {
		tx = tx.Clauses(guard.Tentatively())
	}
	if m.Column.IsSystem() {
		return fmt.Errorf("gormlock: Touch: %s: xmin moves with every update and cannot be touched alone", m.Schema.Name)
	}
	set := clause.Set{{Column: clause.Column{Name: m.Column.Field.DBName}, Value: clause.Column{Name: m.Column.Field.DBName}}}
	if !m.Column.IsHibernate() { // Hibernate sets nothing else
		set = append(set, statement.UpdateTimes(tx, m.Schema)...)
	}
	r := rowToLock{schema: m.Schema, key: key}
	tx = tx.Model(value).Omit(clause.Associations).Clauses(guard.Touch(), set).Scopes(mark.Narrow(append(r.isKey(), conditions...)...)).
		UpdateColumns(map[string]any{})
	if (tx.Error == nil || errors.Is(tx.Error, gorm.ErrRecordNotFound)) && tx.RowsAffected == 0 && !tx.DryRun {
		r.table = statement.TableName(tx.Statement)
		return fmt.Errorf("gormlock: touch %s: %w", r, gorm.ErrRecordNotFound)
	}
	return tx.Error
}

// versionedStruct finds the version of value, a pointer to a loaded struct.
func versionedStruct(db *gorm.DB, value any, caller string) (*model.Model, reflect.Value, error) {
	if err := install.Usable(db); err != nil {
		return nil, reflect.Value{}, err
	}
	row := reflect.ValueOf(value)
	if row.Kind() != reflect.Pointer || row.IsNil() || row.Elem().Kind() != reflect.Struct {
		return nil, reflect.Value{}, fmt.Errorf("gormlock: %s takes a pointer to a loaded struct, not %s", caller, absent.Type(value))
	}
	stmt := &gorm.Statement{DB: db}
	if err := stmt.Parse(value); err != nil {
		return nil, reflect.Value{}, err
	}
	plugin := install.Of(db)
	m := model.OfSchema(db, stmt.Schema)
	switch {
	case plugin.WithoutVersions:
		return nil, reflect.Value{}, fmt.Errorf("%w: the plugin was made WithoutVersions, so there is no %s: take that option out", fault.ErrOption, caller)
	case m.Err != nil:
		return nil, reflect.Value{}, m.Err
	case m.Column == nil:
		return nil, reflect.Value{}, fmt.Errorf("gormlock: %s: %s has no version field: %w", caller, m.Schema.Name, fault.Because(fault.ErrVersionMissing))
	}
	memory.Recover(m, row.Elem())
	return m, row.Elem(), nil
}
