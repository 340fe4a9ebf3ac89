package statement

import (
	"database/sql"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/sqltx"
)

// IsAssociation reports whether GORM makes the statement to save an association.
func IsAssociation(stmt *gorm.Statement) bool {
	_, child := stmt.Settings.Load(savedAssociations)
	return child
}

// savedAssociations is the setting in which GORM keeps which structs it has saved with a statement.
const savedAssociations = "gorm:saved_association_map"

// Conditions returns the WHERE clause of the statement, and its conditions if they are GORM's.
func Conditions(stmt *gorm.Statement) (clause.Clause, []clause.Expression) {
	c := stmt.Clauses["WHERE"]
	where, _ := c.Expression.(clause.Where)
	return c, where.Exprs
}

// Having returns the GROUP BY clause of the statement, and the conditions of its groups.
func Having(stmt *gorm.Statement) (clause.Clause, []clause.Expression) {
	c := stmt.Clauses["GROUP BY"]
	by, _ := c.Expression.(clause.GroupBy)
	return c, by.Having
}

// EachSubQuery visits the sub-queries in a condition, or in its arguments.
func EachSubQuery(condition any, visit func(*gorm.DB)) {
	switch c := condition.(type) {
	case *gorm.DB:
		if c != nil && c.Statement != nil {
			visit(c)
		}
	case []clause.Expression:
		for _, part := range c {
			EachSubQuery(part, visit)
		}
	case []any:
		for _, argument := range c {
			EachSubQuery(argument, visit)
		}
	case map[string]any:
		for _, argument := range c {
			EachSubQuery(argument, visit)
		}
	case sql.NamedArg:
		EachSubQuery(c.Value, visit)
	case clause.AndConditions:
		EachSubQuery(c.Exprs, visit)
	case clause.OrConditions:
		EachSubQuery(c.Exprs, visit)
	case clause.NotConditions:
		EachSubQuery(c.Exprs, visit)
	case clause.Where:
		EachSubQuery(c.Exprs, visit)
	case clause.Expr:
		EachSubQuery(c.Vars, visit)
	case clause.NamedExpr:
		EachSubQuery(c.Vars, visit)
	case clause.IN:
		EachSubQuery(c.Values, visit)
	case clause.Eq:
		EachSubQuery(c.Value, visit)
	case clause.Neq:
		EachSubQuery(c.Value, visit)
	}
}

// HasUpsert reports whether a create updates existing rows.
func HasUpsert(stmt *gorm.Statement) bool {
	conflict, ok := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	return ok && !conflict.DoNothing
}

// DoesNothing reports whether a create leaves existing rows alone.
func DoesNothing(stmt *gorm.Statement) bool {
	conflict, ok := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	return ok && conflict.DoNothing
}

// AsksForRows reports whether the caller has a RETURNING clause.
func AsksForRows(stmt *gorm.Statement) bool {
	_, ok := stmt.Clauses["RETURNING"]
	return ok
}

// Straighten replaces values of an update that are a pointer to a pointer by what they lead to, as GORM does.
func Straighten(stmt *gorm.Statement) {
	values := reflect.ValueOf(stmt.Dest)
	if values.Kind() == reflect.Pointer && values.Elem().Kind() == reflect.Interface {
		if own, is := values.Elem().Interface().(map[string]any); is {
			stmt.Dest = own
		}
		return
	}
	if values.Kind() != reflect.Pointer || values.Elem().Kind() != reflect.Pointer {
		return
	}
	for values.Elem().Kind() == reflect.Pointer {
		values = values.Elem()
	}
	if values.IsNil() {
		return
	}
	if inner := values.Elem(); inner.Kind() == reflect.Interface {
		stmt.Dest = values.Interface()
		Straighten(stmt)
		return
	}
	if SamePointer(stmt.Model, stmt.Dest) {
		stmt.Model = values.Interface()
	}
	stmt.Dest = values.Interface()
}

// FromMap reports whether an update takes its values from a map.
func FromMap(dest any) bool {
	switch dest.(type) {
	case map[string]any, *map[string]any:
		return true
	}
	return false
}

// MapsIn are the maps that are written; none: structs are written.
func MapsIn(dest any) []map[string]any {
	switch dest := dest.(type) {
	case map[string]any:
		return []map[string]any{dest}
	case *map[string]any:
		if dest != nil {
			return []map[string]any{*dest}
		}
	case []map[string]any:
		return dest
	case *[]map[string]any:
		if dest != nil {
			return *dest
		}
	}
	return nil
}

// IsInMap reports whether maps are written, and one has this name as a key.
func IsInMap(dest any, name string) bool {
	return slices.ContainsFunc(MapsIn(dest), func(values map[string]any) bool {
		_, is := values[name]
		return is
	})
}

// IsInMaps reports whether maps are written, and one names the column.
func IsInMaps(dest any, column *schema.Field) bool {
	return slices.ContainsFunc(MapsIn(dest), func(values map[string]any) bool {
		_, is := Named(values, column)
		return is
	})
}

// Named returns the value that a map has for a column, under any name by which GORM finds the column: the column's, the field's, or
// a name that the naming strategy turns into the column's, such as "lockVersion".
func Named(values map[string]any, column *schema.Field) (value any, is bool) {
	for name, given := range values {
		switch {
		case name == column.DBName:
			return given, true
		case name == column.Name || column.Schema.LookUpField(name) == column:
			value, is = given, true
		}
	}
	return value, is
}

// Computed reports whether the server computes a value.
func Computed(value any) bool {
	switch v := value.(type) {
	case clause.Expression, clause.Column, *gorm.DB, gorm.Valuer:
		return true
	case []any: // GORM wraps a sub-query
		return len(v) == 1 && Computed(v[0])
	}
	return false
}

// AssignedTo is what a SET clause of the caller assigns to the column, such as one made by Set of the generics API.
func AssignedTo(stmt *gorm.Statement, column string) (value any, assigned bool) {
	set, _ := stmt.Clauses["SET"].Expression.(clause.Set)
	for i := range set {
		if set[i].Column.Name == column {
			value, assigned = set[i].Value, true
		}
	}
	return value, assigned
}

// ComputesColumn reports whether an upsert assigns something else to the column than the value that would be inserted.
func ComputesColumn(set clause.Set, column string) bool {
	for i := range set {
		from, proposed := set[i].Value.(clause.Column)
		if set[i].Column.Name == column && (!proposed || from.Table != "excluded" || from.Name != column) {
			return true
		}
	}
	return false
}

// FailSubQuery makes the statement around the sub-query stmt fail with err.
func FailSubQuery(stmt *gorm.Statement, err error) {
	stmt.AddClause(clause.Where{Exprs: []clause.Expression{
		clause.Expr{SQL: "CAST(? AS boolean)", Vars: []any{sqltx.FailedValue{Err: err}}},
	}})
}
