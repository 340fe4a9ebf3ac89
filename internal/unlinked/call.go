package unlinked

import (
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/statement"
)

// Association(…).Unscoped().Delete of a belongs-to deletes the other row whether or not the foreign key was set to NULL, and returns the error of the delete
// only.

// noteCall remembers how a statement of such a call has ended.
func noteCall(db *gorm.DB) {
	stmt := db.Statement
	if db.DryRun || !slices.Contains(stmt.BuildClauses, "SET") {
		return
	}
	if in := takenByKey(stmt); in != nil && statement.InAssociationDelete() {
		install.Of(db).Unlinked.Calls.Note(db.Config, &install.Call{Err: db.Error, Of: stmt.Schema, Taken: in})
	}
}

// takenByKey are the conditions of the update by which Association(…).Delete takes a belongs-to from owners, or nil: the keys of the owners, and those
// of the rows that are taken. A Delete of children has them in the other order.
func takenByKey(stmt *gorm.Statement) []clause.IN {
	if !IsUnlinking(stmt) {
		return nil
	}
	in := keyConditions(stmt)
	if len(in) < 2 || !slices.Equal(columnsOf(in[len(in)-2]), stmt.Schema.PrimaryFieldDBNames) {
		return nil
	}
	in = in[len(in)-2:]
	for _, relation := range stmt.Schema.Relationships.BelongsTo {
		if slices.Equal(columnsOf(in[1]), namesOf(ownersColumns(relation))) {
			return in
		}
	}
	return nil
}

// refuseToGoOn refuses the delete of a call whose update has failed, with the error of that. It also refuses the delete of a row to which
// an owner belongs if Association(…).Unscoped().Delete was given other rows: GORM looks at the owner only.
func refuseToGoOn(db *gorm.DB) {
	if db.Error != nil || db.DryRun || install.Of(db) == nil || !install.Of(db).Unlinked.Calls.Any() {
		return
	}
	if !slices.Contains(db.Statement.BuildClauses, "DELETE") || !statement.InAssociationDelete() {
		return
	}
	left := install.Of(db).Unlinked.Calls.Take(db.Config)
	switch {
	case left == nil:
	case left.Err != nil:
		fault.Add(db, left.Err)
	default:
		refuseUnnamed(db, left)
	}
}

// refuseUnnamed refuses the delete of rows that the caller has not named.
func refuseUnnamed(db *gorm.DB, left *install.Call) {
	stmt := db.Statement
	in := keyConditions(stmt)
	if len(in) == 0 || stmt.Schema == nil {
		return
	}
	in = in[len(in)-1:]
	named := map[string]bool{}
	for _, key := range keysIn(left.Taken[1]) {
		named[statement.KeyName(key)] = true
	}
	var of *schema.Relationship
	byKey := false
	for _, relation := range left.Of.Relationships.BelongsTo {
		if relation.FieldSchema.Table == stmt.Schema.Table && slices.Equal(columnsOf(left.Taken[1]), namesOf(ownersColumns(relation))) {
			of, byKey = relation, isByKey(relation)
		}
	}
	if of == nil || byKey && !slices.ContainsFunc(keysIn(in[0]), func(key []any) bool { return !named[statement.KeyName(key)] }) {
		return
	}
	fault.Add(db, fmt.Errorf("gormlock: no row of %s was deleted: Association(%q).Unscoped().Delete deletes each row that a %s names by its foreign key, and it was not given all of these. "+
		"Foreign keys that named a given row were set to NULL, and stay so unless your transaction is rolled back: leave Unscoped out, and delete the row by itself",
		stmt.Schema.Table, of.Name, of.Schema.Name))
}
