package statement

import (
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// Chosen is what Select and Omit let GORM write: columns, by their names in the table, and associations. The zero value lets it write all.
type Chosen struct {
	named      map[string]bool
	restricted bool // only named ones are written
}

// ChosenFor is what a create or an update writes.
func ChosenFor(stmt *gorm.Statement, creates bool) Chosen {
	return chosen(stmt, creates, !creates)
}

// ChosenByCaller is what Select and Omit say alone, without the tags of columns.
func ChosenByCaller(stmt *gorm.Statement) Chosen { return chosen(stmt, false, false) }

func chosen(stmt *gorm.Statement, creates, updates bool) (c Chosen) {
	c.named, c.restricted = stmt.SelectAndOmitColumns(creates, updates)
	return c
}

// Has reports whether GORM writes a column or an association.
func (c Chosen) Has(name string) bool {
	is, named := c.named[name]
	return is || !named && !c.restricted
}

// Names reports whether Select names a column or an association.
func (c Chosen) Names(name string) bool { return c.named[name] }

// SelectNames reports whether Select names a column by its own name.
func SelectNames(stmt *gorm.Statement, column *schema.Field) bool {
	return slices.ContainsFunc(stmt.Selects, func(name string) bool { return stmt.Schema.LookUpField(name) == column })
}

// LeavesOut reports whether a column or an association is left out by its own name.
func (c Chosen) LeavesOut(name string) bool {
	is, named := c.named[name]
	return named && !is
}

// Saving returns a function that reports whether GORM saves an association with a create or an update, by its Select and Omit.
func Saving(stmt *gorm.Statement) func(*schema.Relationship) bool {
	c := ChosenFor(stmt, slices.Contains(stmt.BuildClauses, "VALUES"))
	return func(relation *schema.Relationship) bool { return c.Has(relation.Name) }
}
