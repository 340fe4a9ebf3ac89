package work

import (
	"cmp"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/xact"
)

// mustBeBare refuses a db that has conditions, locks or other parts of a statement, which the call would drop.
func mustBeBare(db *gorm.DB, call, cure string) error {
	stmt := statement.Beside(db).Statement // in a hook, db has nothing of the statement whose hook it is
	var given []string
	for name := range stmt.Clauses {
		given = append(given, cmp.Or(clauses[name], name))
	}
	if slices.Sort(given); len(given) > 1 { // a clause of gormlock marks the WHERE too
		given = slices.DeleteFunc(given, func(name string) bool { return name == "WHERE" })
	}
	for _, part := range []struct {
		is   bool
		name string
	}{
		{statement.HasScopes(stmt), "scopes"}, {stmt.Model != nil, "Model"}, {stmt.Table != "" || stmt.TableExpr != nil, "Table"}, {len(stmt.Joins) > 0, "Joins"},
		{len(stmt.Preloads) > 0, "Preload"}, {len(stmt.Selects) > 0, "Select"}, {len(stmt.Omits) > 0, "Omit"}, {stmt.Distinct, "Distinct"},
		{stmt.Unscoped, "Unscoped"}, {stmt.SQL.Len() > 0, "Raw"},
	} {
		if part.is {
			given = append(given, part.name)
		}
	}
	if len(given) == 0 {
		return nil
	}
	return optionError("%s would drop what its db was given (%s): %s", call, strings.Join(given, ", "), cure)
}

// clauses are the names of clauses for people.
var clauses = map[string]string{xact.ClauseName: "XactLock", asked.ClauseName: "a clause of versions or fences", "FOR": "a row lock", "soft_delete_enabled": "a condition on deleted rows"}

// writesState is tx, to write the columns by which Complete completes a job. A Select or Omit that leaves one out is an error, also if a
// scope adds it.
func writesState(tx *gorm.DB, t *table) (*gorm.DB, error) {
	check := func(db *gorm.DB) error {
		stmt := db.Statement
		if len(stmt.Selects)+len(stmt.Omits) == 0 {
			return nil
		}
		alone := gorm.Statement{DB: db, Schema: t.fields, Table: t.fields.Table, Selects: stmt.Selects, Omits: stmt.Omits}
		chosen, restricted := alone.SelectAndOmitColumns(false, true)
		for _, field := range []string{"State", "ClaimedUntil"} {
			if written, named := chosen[t.column(field)]; !written && (named || restricted) {
				return optionError("Complete writes State and ClaimedUntil, and a Select or Omit of its tx leaves out %s: give it a tx without them", field)
			}
		}
		return nil
	}
	tx = statement.Beside(tx)
	if statement.HasScopes(tx.Statement) {
		tx = tx.Scopes(statement.LastScope(func(db *gorm.DB) {
			if err := check(db); err != nil {
				_ = db.AddError(err)
			}
		}))
	}
	return tx, check(tx)
}
