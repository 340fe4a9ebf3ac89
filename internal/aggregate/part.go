package aggregate

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// created finds the roots of new rows, and of those that an upsert finds.
func (p *part) created() error {
	stmt := p.db.Statement
	if err := p.mapsOf(stmt.Dest); err != nil {
		return err
	}
	conflict, upserts := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	if !upserts {
		p.addAll(stmt.ReflectValue)
		return p.move()
	}
	onKey := conflict.OnConstraint == "" && !slices.ContainsFunc(conflict.Columns, func(c clause.Column) bool {
		field := p.model.Schema.LookUpField(c.Name)
		return field == nil || !field.PrimaryKey
	})
	if isMap(stmt.Dest) || !onKey && !conflict.DoNothing {
		return fmt.Errorf("gormlock: %s: an upsert of maps, or on other columns than the key, does not say whose root moves: update the rows that are there, and create the others", p.model.Schema.Name)
	}
	var there []reflect.Value
	if keys := p.keys(stmt.ReflectValue); len(keys) > 0 {
		var err error
		if there, err = p.stored(keyIn(p.model.Schema, keys)); err != nil {
			return err
		}
	}
	if conflict.DoNothing { // those that are there are not written
		p.found = nil
	}
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if row.Type() == p.model.Schema.ModelType && (!conflict.DoNothing || !p.isAmong(row, there)) {
			p.addOf(row)
		}
	})
	return p.move()
}

func (p *part) isAmong(row reflect.Value, there []reflect.Value) bool {
	key, _ := statement.KeyOf(p.db.Statement, p.model.Schema, row)
	return key != nil && slices.ContainsFunc(there, func(other reflect.Value) bool {
		is, _ := statement.KeyOf(p.db.Statement, p.model.Schema, other)
		return statement.KeyName(is) == statement.KeyName(key)
	})
}

// updated finds the roots of rows that are to be updated, and those that they are to be moved to. What the structs hold is moved
// first: the root is locked before its parts then.
func (p *part) updated() error {
	stmt := p.db.Statement
	conditions, some, err := p.conditions(reflect.ValueOf(stmt.Model))
	if err != nil || !some {
		return err
	}
	p.addAll(reflect.ValueOf(stmt.Model))
	assigned, err := p.assigned()
	if err != nil {
		return err
	}
	for _, relation := range p.model.Roots {
		p.add(relation, func(field *schema.Field) any { return assigned[field.DBName] }, reflect.Value{})
	}
	if err := p.move(); err != nil {
		return err
	}
	there, err := p.stored(conditions...)
	if err != nil {
		return err
	}
	for _, row := range there {
		p.addMoved(row, assigned)
	}
	return p.move()
}

// addMoved adds the roots that a row belongs to when the update has assigned these columns of it.
func (p *part) addMoved(row reflect.Value, assigned map[string]any) {
	for _, relation := range p.model.Roots {
		p.add(relation, func(field *schema.Field) any {
			if value, is := assigned[field.DBName]; is {
				return value
			}
			value, _ := field.ValueOf(p.db.Statement.Context, row)
			return value
		}, reflect.Value{})
	}
}

// deleted finds the roots of rows that are to be deleted.
func (p *part) deleted() error {
	stmt := p.db.Statement
	of := []reflect.Value{reflect.ValueOf(stmt.Dest)}
	if stmt.Model != nil && !statement.SamePointer(stmt.Dest, stmt.Model) {
		of = append(of, reflect.ValueOf(stmt.Model))
	}
	conditions, some, err := p.conditions(of...)
	if err != nil || !some {
		return err
	}
	for _, value := range of {
		p.addAll(value)
	}
	if err := p.move(); err != nil {
		return err
	}
	if _, err := p.stored(conditions...); err != nil {
		return err
	}
	return p.move()
}

// conditions are those by which the statement finds its rows: the caller's, and the keys of structs. some is false where there
// are none, which GORM refuses.
func (p *part) conditions(of ...reflect.Value) (all []clause.Expression, some bool, err error) {
	stmt := p.db.Statement
	if _, joins := stmt.Clauses["FROM"]; joins || len(stmt.Joins) > 0 {
		return nil, false, fmt.Errorf("gormlock: %s has a root, and a statement with joins does not say whose moves: name the rows by a sub-query", p.model.Schema.Name)
	}
	where, given := statement.Conditions(stmt)
	if len(given) == 0 && where.Expression != nil {
		given = []clause.Expression{where.Expression}
	}
	all = slices.Clone(given)
	for _, value := range of {
		if keys := p.keys(value); len(keys) > 0 {
			all = append(all, keyIn(p.model.Schema, keys))
		}
	}
	return all, len(all) > 0 || stmt.AllowGlobalUpdate, nil
}

func keyIn(s *schema.Schema, keys [][]any) clause.Expression {
	column, values := schema.ToQueryValues(clause.CurrentTable, s.PrimaryFieldDBNames, keys)
	return clause.IN{Column: column, Values: values}
}

// assigned are the values that an update assigns to keys of roots, by column.
func (p *part) assigned() (map[string]any, error) {
	stmt := p.db.Statement
	if set, own := stmt.Clauses["SET"].Expression.(clause.Set); own {
		values := map[string]any{}
		for _, assignment := range set {
			values[assignment.Column.Name] = assignment.Value
		}
		return p.inMap(values)
	}
	switch dest := stmt.Dest.(type) {
	case map[string]any:
		return p.inMap(dest)
	case *map[string]any:
		return p.inMap(*dest)
	}
	dest := reflect.ValueOf(stmt.Dest)
	for dest.Kind() == reflect.Pointer {
		dest = dest.Elem()
	}
	if dest.Kind() != reflect.Struct || statement.SamePointer(stmt.Dest, stmt.Model) {
		return nil, nil
	}
	form := &gorm.Statement{DB: p.db}
	if err := form.Parse(stmt.Dest); err != nil {
		return nil, err
	}
	assigned := map[string]any{}
	for _, key := range p.foreignKeys() {
		if from := form.Schema.LookUpField(key.DBName); from != nil {
			if value, zero := from.ValueOf(stmt.Context, dest); !zero {
				assigned[key.DBName] = value
			}
		}
	}
	return assigned, nil
}

// inMap are the keys of roots in a map.
func (p *part) inMap(values map[string]any) (map[string]any, error) {
	assigned := map[string]any{}
	for _, key := range p.foreignKeys() {
		value, is := named(values, key)
		if statement.Computed(value) {
			return nil, fmt.Errorf("gormlock: %s.%s: the key of a root cannot be an expression: nobody knows which root moves", p.model.Schema.Name, key.Name)
		}
		if is {
			assigned[key.DBName] = value
		}
	}
	return assigned, nil
}

// foreignKeys are the fields that hold the keys of roots.
func (p *part) foreignKeys() (keys []*schema.Field) {
	for _, relation := range p.model.Roots {
		for _, ref := range relation.References {
			if !slices.Contains(keys, ref.ForeignKey) {
				keys = append(keys, ref.ForeignKey)
			}
		}
	}
	return keys
}

func isMap(dest any) bool {
	switch dest.(type) {
	case map[string]any, *map[string]any, []map[string]any, *[]map[string]any:
		return true
	}
	return false
}

// mapsOf adds the roots that maps name.
func (p *part) mapsOf(dest any) error {
	var all []map[string]any
	switch dest := dest.(type) {
	case map[string]any:
		all = append(all, dest)
	case *map[string]any:
		all = append(all, *dest)
	case []map[string]any:
		all = dest
	case *[]map[string]any:
		all = *dest
	}
	for _, values := range all {
		if err := p.mapOf(values); err != nil {
			return err
		}
	}
	return nil
}

func (p *part) mapOf(values map[string]any) error {
	assigned, err := p.inMap(values)
	for _, relation := range p.model.Roots {
		p.add(relation, func(field *schema.Field) any { return assigned[field.DBName] }, reflect.Value{})
	}
	return err
}

// named is what a map has for a field, by the name of the column or of the field.
func named(values map[string]any, field *schema.Field) (any, bool) {
	value, is := values[field.DBName]
	if !is {
		value, is = values[field.Name]
	}
	return value, is
}
