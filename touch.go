package gormlock

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// Touch moves the version of a row forward, and its update time where the model has one, as a change of the row would:
// the owner of a changed collection, the parent of a changed child. The row must be at the version that value, a
// pointer to the loaded struct, holds: else the error is [ErrStale] and nothing happened. With IgnoreVersion in
// db.Clauses it moves unchecked, as a counter does, and value needs no more than its key.
func Touch(db *gorm.DB, value any) error {
	m, row, err := versionedStruct(db, value, "Touch")
	if err != nil {
		return err
	}
	tx := beside(db)
	key, _ := keyOf(&gorm.Statement{Context: db.Statement.Context}, m.schema, row)
	if key == nil {
		return fmt.Errorf("gormlock: Touch: %s without a primary key: %w", m.schema.Name, gorm.ErrPrimaryKeyRequired)
	}
	if m.column.kind == systemVersion {
		return fmt.Errorf("gormlock: Touch: %s: xmin moves with every update and cannot be touched alone", m.schema.Name)
	}
	set := clause.Set{{Column: clause.Column{Name: m.column.field.DBName}, Value: clause.Column{Name: m.column.field.DBName}}}
	if m.column.mode != hibernateMode { // which sets nothing else
		set = append(set, updateTimes(tx, m.schema)...)
	}
	r := rowToLock{schema: m.schema, key: key}
	tx = tx.Model(value).Clauses(VersionClause{change: func(i *versionIntent) { i.touch = true }}, set).Scopes(narrowed(r.isKey()...)).
		UpdateColumns(map[string]any{})
	return tx.Error
}

// updateTimes are the assignments GORM makes in every update.
func updateTimes(db *gorm.DB, s *schema.Schema) clause.Set {
	var set clause.Set
	now := db.NowFunc()
	for _, field := range s.Fields {
		var value any
		switch field.AutoUpdateTime {
		case schema.UnixNanosecond:
			value = now.UnixNano()
		case schema.UnixMillisecond:
			value = now.UnixMilli()
		case schema.UnixSecond:
			value = now.Unix()
		case schema.UnixTime:
			value = now
		default:
			continue
		}
		if s.FieldsByDBName[field.DBName] == field {
			set = append(set, clause.Assignment{Column: clause.Column{Name: field.DBName}, Value: value})
		}
	}
	return set
}

// versionedStruct finds the version of value, a pointer to a loaded struct.
func versionedStruct(db *gorm.DB, value any, caller string) (*versionedModel, reflect.Value, error) {
	if err := usable(db); err != nil {
		return nil, reflect.Value{}, err
	}
	row := reflect.ValueOf(value)
	if row.Kind() != reflect.Pointer || row.IsNil() || row.Elem().Kind() != reflect.Struct {
		return nil, reflect.Value{}, fmt.Errorf("gormlock: %s takes a pointer to a loaded struct, not %T", caller, value)
	}
	stmt := &gorm.Statement{DB: db}
	if err := stmt.Parse(value); err != nil {
		return nil, reflect.Value{}, err
	}
	plugin := pluginOf(db)
	m := plugin.versions.of(db, stmt.Schema)
	switch {
	case plugin.withoutVersions:
		return nil, reflect.Value{}, fmt.Errorf("%w: the plugin was made WithoutVersions: %s", ErrOption, caller)
	case m.err != nil:
		return nil, reflect.Value{}, m.err
	case m.column == nil:
		return nil, reflect.Value{}, fmt.Errorf("gormlock: %s: %s has no version field: %w", caller, m.schema.Name, because(ErrVersionMissing))
	}
	return m, row.Elem(), nil
}
