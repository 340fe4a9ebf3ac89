package guard

import (
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// readable are the readable columns of the table.
func readable(stmt *gorm.Statement, m *model.Model) []*schema.Field {
	return slices.DeleteFunc(m.Readable(), func(field *schema.Field) bool { return !isColumn(stmt, m, field) })
}

// isColumn reports whether the table has the column of a field. It asks the server about fields that only queries may fill, such as a count,
// because they can also be computed columns.
func isColumn(stmt *gorm.Statement, m *model.Model, field *schema.Field) bool {
	if !statement.IsComputed(field) || m.Column != nil && m.Column.Field == field {
		return true
	}
	table := statement.NameInSQL(stmt)
	question, of := "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass($1) AND attname = $2 AND NOT attisdropped)", table
	switch d := dialect.Of(stmt.DB); {
	case d.IsMySQL():
		question, of = "SELECT EXISTS (SELECT 1 FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ? AND column_name = ?)", stmt.Table
	case d.IsSQLite():
		question, of = "SELECT EXISTS (SELECT 1 FROM pragma_table_xinfo(?) WHERE name = ?)", stmt.Table
	}
	return journal.Ask(stmt, "column "+field.DBName, table, question, of, field.DBName)
}
