package memory

import (
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// Table is a table as a statement names it, and the text that has said where names are looked up. Structs of one model may be rows of several
// tables, which begin with the same keys and versions.
type Table struct {
	name, path string
	read       bool // only read
}

// TableOf is the table in which a statement has the rows of a model. A statement of another model means the table of this one.
func TableOf(stmt *gorm.Statement, s *schema.Schema) Table { return Here(stmt).Of(stmt, s) }

// Here is no table yet, but the moment of a statement.
func Here(stmt *gorm.Statement) (t Table) {
	if j := journal.Of(stmt); j != nil {
		t.path = j.Names()
	}
	return t
}

// Of is the table of a model at that moment.
func (t Table) Of(stmt *gorm.Statement, s *schema.Schema) Table {
	t.name = s.Table
	if stmt.TableExpr != nil && stmt.Schema != nil && stmt.Schema.Table == s.Table {
		t.name = statement.PlainName(stmt)
	}
	return t
}

// Beside is the table of another model whose structs are in structs of this one.
func (t Table) Beside(s *schema.Schema) Table { return Table{name: s.Table, path: t.path} }

// isApart reports whether two tables are certainly two: their names are looked up in the same places, or their schemas are known. What was
// read by another name may be a view of the table.
func (t Table) isApart(other Table) bool {
	mine, its := t.schema(), other.schema()
	alike := strings.Contains(t.name, ".") == strings.Contains(other.name, ".")
	return !other.read && t.name != other.name && t.path == other.path && alike || mine != "" && its != "" && mine != its
}

// schema is that of a table, empty where it is not known.
func (t Table) schema() string {
	if of, _, named := strings.Cut(t.name, "."); named {
		return strings.ToLower(of)
	}
	return strings.ToLower(sqltext.OnlySchema(t.path))
}

// likeness is what is known of the table of a struct, beside that of a statement.
type likeness int

const (
	oneTable likeness = iota
	perhaps           // it has another name, or names are looked up elsewhere
	twoTables
)

// among compares a table with those whose rows a place is known to have had.
func (t Table) among(others []Table) likeness {
	switch {
	case slices.ContainsFunc(others, func(other Table) bool { return t.name == other.name && t.path == other.path }):
		return oneTable
	case !slices.ContainsFunc(others, func(other Table) bool { return !t.isApart(other) }):
		return twoTables
	default:
		return perhaps
	}
}
