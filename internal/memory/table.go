package memory

import (
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// Table is a table as a statement names it. The same name may mean another table later, once the search path was changed. Structs of one model
// may be rows of several tables, which begin with the same keys and versions.
type Table struct {
	Name string
	path int // see journal
}

// TableOf is the table in which a statement has the rows of a model. A statement of another model means the table of this one.
func TableOf(stmt *gorm.Statement, s *schema.Schema) Table { return Here(stmt).Of(stmt, s) }

// Here is no table yet, but the moment of a statement.
func Here(stmt *gorm.Statement) (t Table) {
	if j := journal.Of(stmt); j != nil {
		t.path = j.Path()
	}
	return t
}

// Of is the table of a model at that moment.
func (t Table) Of(stmt *gorm.Statement, s *schema.Schema) Table {
	t.Name = s.Table
	if stmt.TableExpr != nil && stmt.Schema != nil && stmt.Schema.Table == s.Table {
		t.Name = statement.PlainName(stmt)
	}
	return t
}

// Beside is the table of another model whose structs are in structs of this one.
func (t Table) Beside(s *schema.Schema) Table { return Table{s.Table, t.path} }
