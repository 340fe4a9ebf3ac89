package memory

import (
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// Table is a table as a statement names it. Structs of one model may be rows of several tables, whose keys and versions begin with the same values.
type Table struct {
	name   journal.TableName
	tables *journal.Tables // of the transaction; nil: there is none
}

// TableOf is the table in which a statement has the rows of a model. If the statement is of another model, it is this model's table.
func TableOf(stmt *gorm.Statement, s *schema.Schema) Table { return Here(stmt).Of(stmt, s) }

// WrittenTable does the same for a statement that is about to write. If the transaction also has the model with another table name, it asks the
// server whether that is another table.
func WrittenTable(stmt *gorm.Statement, s *schema.Schema) Table {
	t := TableOf(stmt, s)
	t.tables.Ask(stmt, s.ModelType, t.name)
	return t
}

// Here is the moment of a statement, without a table.
func Here(stmt *gorm.Statement) (t Table) {
	t.tables, t.name = journal.Of(stmt).Tables()
	return t
}

// Of is the table of a model at that moment.
func (t Table) Of(stmt *gorm.Statement, s *schema.Schema) Table {
	t = t.Beside(s)
	if stmt.Schema != nil && stmt.Schema.Table == s.Table {
		t.name.Relation = statement.RelationIn(stmt, t.name.Relation)
	}
	t.tables.Meet(s.ModelType, t.name)
	return t
}

// Beside is the table of another model whose structs are within structs of this one.
func (t Table) Beside(s *schema.Schema) Table {
	t.name.Relation = statement.RelationOf(s.Table)
	return t
}

// IsNamed reports whether two tables have the same name.
func (t Table) IsNamed(other Table) bool { return t.name.IsSame(other.name) }

// likeness says how the table of a struct compares with a statement's.
type likeness int

const (
	oneTable likeness = iota
	perhaps           // it has another name, or names are looked up in other schemas
	twoTables
)

// like compares two tables. They are certainly different only if the server has said so.
func (t Table) like(other Table) likeness {
	if t.IsNamed(other) {
		return oneTable
	}
	mine, its := t.which(other), other.which(t)
	switch {
	case mine == "" || its == "":
		return perhaps
	case mine == its:
		return oneTable
	}
	return twoTables
}

func (t Table) which(other Table) string {
	if t.tables == nil {
		return other.tables.Which(t.name)
	}
	return t.tables.Which(t.name)
}

// among compares a table with those whose rows a place is known to have had. If these are not all the same, the result is perhaps.
func (t Table) among(others []Table) likeness {
	for i, other := range others {
		if is := t.like(other); is == perhaps || i > 0 && is != t.like(others[0]) {
			return perhaps
		}
	}
	if len(others) == 0 {
		return twoTables
	}
	return t.like(others[0])
}
