package guard

import (
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// barred returns the error of an update whose caller names a column that its tag keeps out of updates: GORM would leave it
// out. The fields of a struct are not named by writing the struct.
func (p *plan) barred(stmt *gorm.Statement) error {
	if !p.version.is() || p.intent.Touches() {
		return nil
	}
	name := ""
	switch values := stmt.Dest.(type) {
	case map[string]any:
		name = p.barredIn(stmt, values)
	case *map[string]any:
		if values != nil {
			name = p.barredIn(stmt, *values)
		}
	default:
		if at := slices.IndexFunc(stmt.Selects, func(name string) bool { return p.isBarred(stmt, name) }); at >= 0 {
			name = stmt.Selects[at]
		}
	}
	if name == "" {
		return nil
	}
	return fmt.Errorf("gormlock: %s.%s: its tag keeps it out of updates, so GORM leaves it out: do not name it, or change the tag",
		p.model.Schema.Name, p.model.Schema.LookUpField(name).Name)
}

// barredIn is such a column of a map that the caller's Select does not leave out, the first by its name. It is empty if there is
// none.
func (p *plan) barredIn(stmt *gorm.Statement, values map[string]any) (first string) {
	if _, ownSet := stmt.Clauses["SET"]; ownSet {
		return "" // it is written instead of them
	}
	for name := range values {
		if (first == "" || name < first) && p.isBarred(stmt, name) && p.isSelected(stmt, name) {
			first = name
		}
	}
	return first
}

// isBarred reports whether a name is that of a column which GORM leaves out of updates, and which neither a guard writes nor
// the caller leaves out himself.
func (p *plan) isBarred(stmt *gorm.Statement, name string) bool {
	field := p.model.Schema.LookUpField(name)
	if field == nil || field.Updatable && field.DBName != "" || p.model.Schema.Relationships.Relations[field.Name] != nil || p.version.owns(field.DBName) {
		return false
	}
	return (p.model.Fence == nil || p.model.Fence.Field.DBName != field.DBName) && !p.isOmitted(stmt, field)
}

// isSelected reports whether the caller's Select, if there is one, names the column.
func (p *plan) isSelected(stmt *gorm.Statement, name string) bool {
	return len(stmt.Selects) == 0 || slices.ContainsFunc(stmt.Selects, func(selected string) bool {
		return selected == "*" || p.model.Schema.LookUpField(selected) == p.model.Schema.LookUpField(name)
	})
}

// isOmitted reports whether the caller leaves the column out himself.
func (p *plan) isOmitted(stmt *gorm.Statement, field *schema.Field) bool {
	return slices.ContainsFunc(stmt.Omits, func(name string) bool { return p.model.Schema.LookUpField(name) == field })
}
