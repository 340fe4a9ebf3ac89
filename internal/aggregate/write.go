package aggregate

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/guard"
	"github.com/gormlock/gormlock/internal/statement"
)

// created finds the roots of new rows, and of rows that an upsert finds.
func (p *part) created() error {
	stmt := p.db.Statement
	p.unscoped = stmt.Unscoped
	for _, values := range statement.MapsIn(stmt.Dest) {
		if err := cmp.Or(p.appended(values), p.mapOf(values)); err != nil {
			return err
		}
	}
	if conflict, upserts := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict); upserts {
		return p.upserted(conflict)
	}
	p.hold(stmt.ReflectValue)
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if row.Type() == p.model.Schema.ModelType {
			p.addOf(row)
		}
	})
	p.seen = guard.Observe(stmt, p.columns())
	return p.move()
}

func (p *part) upserted(conflict clause.OnConflict) error {
	stmt := p.db.Statement
	p.keeps = conflict.DoNothing
	onKey := conflict.OnConstraint == ""
	if len(conflict.Columns) > 0 { // other columns than the key belong to another unique index
		named := map[*schema.Field]bool{}
		for _, c := range conflict.Columns {
			field := p.model.Schema.LookUpField(c.Name)
			onKey = onKey && field != nil && field.PrimaryKey
			named[field] = true
		}
		onKey = onKey && len(named) == len(p.model.Schema.PrimaryFields)
	}
	if statement.MapsIn(stmt.Dest) != nil || !onKey && !conflict.DoNothing {
		return fmt.Errorf("gormlock: %s has a root, and an upsert of maps, or on other columns than the primary key, does not show which root moves: update the rows that exist, and create the others", p.model.Schema.Name)
	}
	if keys := p.keys(stmt.ReflectValue); len(keys) > 0 {
		if err := p.stored(true, guard.KeyIn(p.model.Schema, keys)); err != nil {
			return err
		}
		for _, key := range keys {
			if !conflict.DoNothing && !p.isThere(key) {
				p.absent = append(p.absent, key)
			}
		}
	}
	p.hold(stmt.ReflectValue)
	// Some rows may stay as they are. But if the check of a foreign key locks the root's row, the root still moves first.
	p.late = (conflict.DoNothing || len(conflict.Where.Exprs) > 0) && !dialect.Of(p.db).IsMySQL()
	if !conflict.DoNothing && !p.late { // existing rows are written
		for _, row := range p.there {
			p.addOf(row)
		}
	}
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if row.Type() != p.model.Schema.ModelType || p.late {
			return
		}
		is := p.isThere(p.keyOf(row))
		for _, relation := range p.model.Roots {
			if !is || moves(conflict, relation) {
				p.addBy(relation, row)
			}
		}
	})
	p.seen = guard.Observe(stmt, p.columns())
	if !conflict.DoNothing && (len(p.absent) > 0 || dialect.Of(stmt.DB).FindsByAnyIndex()) {
		p.onlyFound(conflict)
	}
	return p.move()
}

// moves reports whether an upsert gives existing rows the root that their structs name. A default, and other keys that
// the server computes, are seen afterwards.
func moves(conflict clause.OnConflict, relation *schema.Relationship) bool {
	return !conflict.DoNothing && slices.ContainsFunc(relation.References, func(ref *schema.Reference) bool {
		return conflict.UpdateAll && !ref.ForeignKey.HasDefaultValue ||
			slices.ContainsFunc(conflict.DoUpdates, func(a clause.Assignment) bool { return a.Column.Name == ref.ForeignKey.DBName })
	})
}

// updated finds the roots of the rows to update, and the roots to which they go.
func (p *part) updated() error {
	stmt := p.db.Statement
	p.unscoped = stmt.Unscoped
	conditions, keys, err := p.conditions(reflect.ValueOf(stmt.Model))
	if _, ownSet := stmt.Clauses["SET"]; ownSet && len(conditions) == 0 && !stmt.AllowGlobalUpdate {
		return err // GORM adds no key, and refuses the statement
	}
	if err != nil || len(conditions)+keys == 0 && !stmt.AllowGlobalUpdate {
		return err
	}
	set := statement.Assignments(stmt)
	if guard.SetsNothing(stmt, set) {
		return nil
	}
	assigned, err := p.assigned(set)
	if err != nil {
		return err
	}
	p.hold(reflect.ValueOf(stmt.Model))
	if dest, form := p.values(); form != nil {
		p.hold(dest)
	}
	if err := p.find(conditions, keys, assigned, reflect.ValueOf(stmt.Model)); err != nil {
		return err
	}
	for _, row := range p.there {
		if !guard.Leaves(stmt, row) {
			p.addOf(row)
			p.addMoved(row, assigned)
		}
	}
	p.seen = guard.Observe(stmt, p.columns())
	return p.move()
}

// find finds the rows of the statement, and restricts the statement to them. The roots that structs name move first, unless
// the caller's conditions may depend on these roots.
func (p *part) find(conditions []clause.Expression, keys int, assigned map[string]any, of ...reflect.Value) error {
	_, moves := p.db.Statement.Settings.Load(statement.MovingRoots)
	if len(conditions) == 0 || moves {
		if err := p.ahead(assigned, of...); err != nil {
			return err
		}
	}
	all := slices.Clone(conditions)
	for _, value := range of {
		if keys := p.keys(value); len(keys) > 0 {
			all = append(all, guard.KeyIn(p.model.Schema, keys))
		}
	}
	if err := p.stored(p.db.Statement.Unscoped, all...); err != nil {
		return err
	}
	if len(conditions) > 0 || keys == 0 || len(p.there) < keys {
		return p.narrow()
	}
	return nil
}

// addMoved adds the roots that a row has after the update has assigned these columns.
func (p *part) addMoved(row reflect.Value, assigned map[string]any) {
	if len(assigned) == 0 {
		return
	}
	for _, relation := range p.model.Roots {
		p.add(relation, func(field *schema.Field) any {
			if value, is := assigned[field.DBName]; is {
				return value
			}
			value, _ := field.ValueOf(p.db.Statement.Context, row)
			return value
		})
	}
}

// deleted finds the roots of rows that are to be deleted.
func (p *part) deleted() error {
	stmt := p.db.Statement
	p.deletes, p.unscoped = true, stmt.Unscoped
	of := []reflect.Value{reflect.ValueOf(stmt.Dest)}
	if stmt.Model != nil && !statement.SamePointer(stmt.Dest, stmt.Model) {
		of = append(of, reflect.ValueOf(stmt.Model))
	}
	conditions, keys, err := p.conditions(of...)
	if err != nil || len(conditions)+keys == 0 && !stmt.AllowGlobalUpdate {
		return err
	}
	for _, value := range of {
		p.hold(value)
	}
	if err := p.find(conditions, keys, nil, of...); err != nil {
		return err
	}
	for _, row := range p.there {
		if !guard.Leaves(stmt, row) {
			p.addOf(row)
		}
	}
	p.seen = guard.Observe(stmt, p.columns())
	return p.move()
}

// conditions returns the conditions that the caller gave the statement, and the number of keys in its structs.
func (p *part) conditions(of ...reflect.Value) (given []clause.Expression, keys int, err error) {
	stmt := p.db.Statement
	if _, joins := stmt.Clauses["FROM"]; joins || len(stmt.Joins) > 0 {
		return nil, 0, fmt.Errorf("gormlock: %s has a root, and a statement with joins does not show which root moves: select the rows by a sub-query", p.model.Schema.Name)
	}
	where, given := statement.Conditions(stmt)
	if len(given) == 0 && where.Expression != nil {
		given = []clause.Expression{where.Expression}
	}
	distinct := map[string]bool{}
	for _, value := range of {
		for _, key := range p.keys(value) {
			distinct[statement.KeyName(key)] = true
		}
	}
	if len(distinct) > 0 && slices.ContainsFunc(given, isOr) {
		return nil, 0, fmt.Errorf("gormlock: %s has a root, and Or together with the key of a struct means other rows too: write the conditions in one Where, or use a struct without a key", p.model.Schema.Name)
	}
	return given, len(distinct), nil
}

func isOr(condition clause.Expression) bool {
	_, is := condition.(clause.OrConditions)
	return is
}

// assigned are the values that an update assigns to keys of roots, by column.
func (p *part) assigned(set clause.Set) (map[string]any, error) {
	values := map[string]any{}
	for _, assignment := range set {
		values[assignment.Column.Name] = assignment.Value
	}
	return p.inMap(values)
}

// values returns the struct from which an update takes its values, if it is another than the updated one, and its schema.
func (p *part) values() (reflect.Value, *schema.Schema) {
	stmt := p.db.Statement
	dest := reflect.ValueOf(stmt.Dest)
	for dest.Kind() == reflect.Pointer {
		dest = dest.Elem()
	}
	if dest.Kind() != reflect.Struct || statement.SamePointer(stmt.Dest, stmt.Model) {
		return reflect.Value{}, nil
	}
	form := &gorm.Statement{DB: p.db}
	if err := form.Parse(stmt.Dest); err != nil {
		return reflect.Value{}, nil // GORM refuses the statement
	}
	return dest, form.Schema
}

// keyedBy returns the struct that names the root of the rows: the values, or the struct that is updated.
func (p *part) keyedBy(relation *schema.Relationship, dest reflect.Value) reflect.Value {
	updated := reflect.Indirect(reflect.ValueOf(p.db.Statement.Model))
	if p.foreignOf(relation, dest) == nil && updated.Kind() == reflect.Struct && updated.Type() == p.model.Schema.ModelType {
		return updated
	}
	return dest
}

// inMap returns the keys of roots in a map. A value of another type than its field is left to the server, which may read
// it differently from Go.
func (p *part) inMap(values map[string]any) (map[string]any, error) {
	assigned := map[string]any{}
	for _, key := range p.foreignKeys() {
		value, is := statement.Named(values, key)
		if statement.Computed(value) {
			return nil, fmt.Errorf("gormlock: %s.%s: the key of a root cannot be an expression, which does not show which root moves: assign a value", p.model.Schema.Name, key.Name)
		}
		switch {
		case is && isInteger(key) && !isNumber(plain(value)):
			assigned[key.DBName] = leftToServer{}
		case is:
			assigned[key.DBName] = value
		}
	}
	return assigned, nil
}

// leftToServer is a key that only the server can read.
type leftToServer struct{}

func isNumber(value any) bool {
	v := reflect.ValueOf(value)
	return value == nil || v.CanInt() || v.CanUint() || v.Kind() == reflect.Struct
}

// mapOf adds the roots that a map names.
func (p *part) mapOf(values map[string]any) error {
	assigned, err := p.inMap(values)
	for _, relation := range p.model.Roots {
		p.add(relation, func(field *schema.Field) any { return assigned[field.DBName] })
	}
	return err
}
