package guard

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// unreadCondition is the error of a struct among the conditions that counts as not read. GORM uses its version as a condition, and no row has that
// version, so the statement would silently find no row.
func unreadCondition(stmt *gorm.Statement, m *model.Model) error {
	_, conditions := statement.Conditions(stmt)
	if m == nil || m.Column == nil || !asksUnread(m, conditions) {
		return nil
	}
	return fmt.Errorf("%w: %s: nothing was executed, a condition has %s of a struct that was not read from its row: read it first, or name the columns that count: Where(&row, %q)",
		fault.ErrVersionMissing, statement.TableName(stmt), m.Column.Field.Name, m.Schema.PrimaryFields[0].Name)
}

// asksUnread reports whether one of the conditions is the version of such a struct.
func asksUnread(m *model.Model, conditions []clause.Expression) bool {
	for _, condition := range conditions {
		is := false
		switch c := condition.(type) {
		case clause.Eq:
			column, named := c.Column.(clause.Column)
			if named && column.Name == m.Column.Field.DBName {
				version, err := m.Column.Of(c.Value)
				is = err == nil && m.Column.IsUnread(version)
			}
		case clause.AndConditions:
			is = asksUnread(m, c.Exprs)
		case clause.OrConditions:
			is = asksUnread(m, c.Exprs)
		case clause.NotConditions:
			is = asksUnread(m, c.Exprs)
		case clause.Where:
			is = asksUnread(m, c.Exprs)
		}
		if is {
			return true
		}
	}
	return false
}
