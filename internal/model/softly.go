package model

import (
	"context"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"
)

// softly is the key under which a model remembers IsSoftDelete of a field.
type softly struct{ field *schema.Field }

// IsSoftDelete reports whether a delete of the model sets this column, and queries leave out rows where it is set. A column with a type that
// only adds conditions, such as a tenant's, is not one.
func (m *Model) IsSoftDelete(field *schema.Field) bool {
	if len(m.Schema.DeleteClauses) == 0 {
		return false
	}
	return m.Remember(softly{field}, func() any { return m.asksSoftDelete(field) }).(bool)
}

// asksSoftDelete asks the type of the field, by a delete that is not executed.
func (m *Model) asksSoftDelete(field *schema.Field) (is bool) {
	value := reflect.New(field.IndirectFieldType).Interface()
	_, hides := value.(schema.QueryClausesInterface)
	deletes, can := value.(schema.DeleteClausesInterface)
	if !hides || !can {
		return false
	}
	defer func() {
		if recover() != nil { // the type needs something that only a real delete has
			is = true
		}
	}()
	row := reflect.New(m.Schema.ModelType)
	base := &gorm.DB{Config: m.db.Config}
	base.Statement = &gorm.Statement{DB: base, Context: context.Background(), ConnPool: m.db.ConnPool}
	stmt := base.Session(&gorm.Session{NewDB: true, DryRun: true, SkipHooks: true, Logger: logger.Discard}).Model(row.Interface()).Statement
	stmt.Schema, stmt.Table, stmt.Dest, stmt.ReflectValue = m.Schema, m.Schema.Table, row.Interface(), row.Elem()
	for _, c := range deletes.DeleteClauses(field) {
		stmt.AddClause(c)
	}
	set, _ := stmt.Clauses["SET"].Expression.(clause.Set)
	for _, assignment := range set {
		is = is || m.Schema.LookUpField(assignment.Column.Name) == field
	}
	return is
}
