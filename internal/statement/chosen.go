package statement

import (
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// Chosen is what Select and Omit let GORM write: columns by their names in the table, and associations. The zero value is all of them.
type Chosen struct {
	named      map[string]bool
	restricted bool // what is not named is left out
}

// ChosenFor is what a create writes, or an update.
func ChosenFor(stmt *gorm.Statement, creates bool) Chosen {
	return chosen(stmt, creates, !creates)
}

// ChosenByCaller is so whatever the tags of columns say.
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

// Names reports whether Select names it.
func (c Chosen) Names(name string) bool { return c.named[name] }

// SelectNames reports whether Select names a column by its own name.
func SelectNames(stmt *gorm.Statement, column *schema.Field) bool {
	return slices.ContainsFunc(stmt.Selects, func(name string) bool { return stmt.Schema.LookUpField(name) == column })
}

// LeavesOut reports whether it is left out by its own name.
func (c Chosen) LeavesOut(name string) bool {
	is, named := c.named[name]
	return named && !is
}

// Saving tells which associations GORM saves with a create or an update, by its Select and Omit.
func Saving(stmt *gorm.Statement) func(*schema.Relationship) bool {
	c := ChosenFor(stmt, slices.Contains(stmt.BuildClauses, "VALUES"))
	return func(relation *schema.Relationship) bool { return c.Has(relation.Name) }
}
