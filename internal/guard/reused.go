package guard

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/statement"
)

// reused returns the error of a write that found no row because its conditions name rows with other keys than its structs. GORM adds the key of a
// struct to the conditions of a chain. A chain that is used again still has that key, and the conditions of its caller.
func (j *judge) reused(stmt *gorm.Statement) error {
	_, given := statement.Conditions(stmt)
	if j.version.is() && len(j.rows) > 0 && j.where.kept {
		return fmt.Errorf("gormlock: %s: nothing was written, and it was under the conditions of the statement before it: %s", j.rowName(stmt, j.named(stmt, &j.rows[0]).Key), newChain)
	}
	if !j.version.is() || len(j.rows) == 0 || !j.contradicts(stmt, given) {
		return nil
	}
	return fmt.Errorf("gormlock: %s: nothing was written, the conditions of the statement name another row by its key: %s", j.rowName(stmt, j.named(stmt, &j.rows[0]).Key), newChain)
}

// contradicts reports whether one of these conditions, all of which must hold, excludes the keys of all structs.
func (j *judge) contradicts(stmt *gorm.Statement, conditions []clause.Expression) bool {
	for _, condition := range conditions {
		var found bool
		switch c := condition.(type) {
		case clause.OrConditions:
			return false
		case clause.AndConditions:
			found = j.contradicts(stmt, c.Exprs)
		case clause.Eq:
			found = j.excludes(stmt, c.Column, []any{c.Value})
		case clause.IN:
			found = j.excludes(stmt, c.Column, c.Values)
		default:
			found = j.contradicts(stmt, mark.InBrackets(condition))
		}
		if found && !slices.ContainsFunc(conditions, isOr) {
			return true
		}
	}
	return false
}

func isOr(condition clause.Expression) bool {
	_, is := condition.(clause.OrConditions)
	return is
}

// excludes reports whether these columns are a key or a part of it, and no struct has one of these values in them.
func (j *judge) excludes(stmt *gorm.Statement, column any, values []any) bool {
	parts := j.partsOf(stmt, column)
	if len(parts) == 0 {
		return false
	}
	names := map[string]bool{}
	for _, value := range values {
		tuple, many := value.([]any)
		if !many {
			tuple = []any{value}
		}
		if slices.ContainsFunc(tuple, isSeveral) {
			return false
		}
		names[statement.KeyName(tuple)] = true
	}
	for i := range j.rows {
		if row := &j.rows[i]; isNamed(names, j.named(stmt, row).Key, parts) || row.Struct.IsValid() && isNamed(names, j.keyNow(stmt, row), parts) {
			return false
		}
	}
	return true
}

// keyNow is the current key of a struct: a hook may have changed its spelling.
func (j *judge) keyNow(stmt *gorm.Statement, row *Row) []any {
	return valuesIn(stmt, j.model.Schema.PrimaryFields, row.Struct)
}

// isNamed reports whether these parts of a key are among the names.
func isNamed(names map[string]bool, key []any, parts []int) bool {
	own := make([]any, 0, len(parts))
	for _, part := range parts {
		own = append(own, key[part])
	}
	return names[statement.KeyName(own)]
}

// isSeveral reports whether a value in a condition may stand for several values, or for one that only the server knows.
func isSeveral(value any) bool {
	if _, one := value.(driver.Valuer); one {
		return false
	}
	kind := reflect.ValueOf(value).Kind()
	return statement.Computed(value) || kind == reflect.Slice || kind == reflect.Array
}

// partsOf are the places of a condition's columns in the primary key. It returns none if one of them is another column.
func (j *judge) partsOf(stmt *gorm.Statement, column any) []int {
	var names []string
	switch c := column.(type) {
	case string:
		names = []string{c}
	case clause.Column:
		names = []string{ownName(stmt, c)}
	case []clause.Column:
		for i := range c {
			names = append(names, ownName(stmt, c[i]))
		}
	}
	keys := j.model.Schema.PrimaryFieldDBNames
	var parts []int
	for _, name := range names {
		at := slices.Index(keys, name)
		if name == clause.PrimaryKey && len(keys) == 1 {
			at = 0
		}
		if at < 0 {
			return nil
		}
		parts = append(parts, at)
	}
	return parts
}

// ownName is the name of a column of the statement's own table. It is empty for a column of another table, and for an expression.
func ownName(stmt *gorm.Statement, c clause.Column) string {
	if c.Raw || c.Table != "" && c.Table != clause.CurrentTable && c.Table != stmt.Table {
		return ""
	}
	return c.Name
}
