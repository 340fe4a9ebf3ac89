package guard

import (
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// misread is the error of a caller's RETURNING that gives another value the name of the version or of a key. GORM would read it into that field of
// the struct, and the next write would compare it, or write another row.
func (d *draft) misread(stmt *gorm.Statement) error {
	asked := stmt.Clauses["RETURNING"].Expression
	if asked == nil || !d.version.is() {
		return nil
	}
	if given, is := asked.(clause.Returning); is && len(given.Columns) == 0 {
		return nil
	}
	text := &gorm.Statement{DB: stmt.DB, Table: stmt.Table, TableExpr: stmt.TableExpr, Schema: stmt.Schema, Context: stmt.Context, Clauses: map[string]clause.Clause{}}
	asked.Build(text)
	columns, _ := sqltext.List(text.SQL.String()) // if we cannot read the list, the server does not accept it either
	for _, column := range columns {
		if field := d.misreads(stmt, column); field != "" {
			return fmt.Errorf("gormlock: %s: RETURNING has %s, which GORM reads into %s.%s: return the column of the table itself, and name others differently with AS",
				d.model.Schema.Name, column.Text, d.model.Schema.Name, field)
		}
	}
	return nil
}

// misreads is the field of the version or of a key into which another value is read, or "".
func (d *draft) misreads(stmt *gorm.Statement, column sqltext.Listed) (field string) {
	own := column.Table == "" || column.Table == "new" || strings.EqualFold(column.Table, d.model.Table) || strings.EqualFold(column.Table, statement.OwnName(stmt))
	if column.Column == "*" {
		if own {
			return ""
		}
		return d.version.Field.Name
	}
	for _, name := range column.Names {
		leads := d.model.Schema.LookUpField(name)
		if leads == nil || leads != d.version.Field && !leads.PrimaryKey || own && strings.EqualFold(column.Column, leads.DBName) {
			continue
		}
		return leads.Name
	}
	return ""
}
