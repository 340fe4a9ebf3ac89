package work

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/statement"
)

// mustBeBare refuses a db that has conditions, locks or other parts of a statement, which the call would drop.
func mustBeBare(db *gorm.DB, call, cure string) error {
	return mark.RefuseGiven(db, "work: "+call, cure)
}

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
	tx = checked(statement.Beside(tx), check)
	return tx, check(tx)
}

// checked is tx, which also checks what its scopes add, if it has any.
func checked(tx *gorm.DB, check func(*gorm.DB) error) *gorm.DB {
	if !statement.HasScopes(tx.Statement) {
		return tx
	}
	return tx.Scopes(statement.LastScope(func(db *gorm.DB) {
		if err := check(db); err != nil {
			_ = db.AddError(err)
		}
	}))
}

// insertsOnly is tx, to insert jobs. An upsert that writes what workers keep is an error, also if a scope adds it: it would hand out a job that
// runs once more.
func insertsOnly(tx *gorm.DB, t *table) (*gorm.DB, error) {
	check := func(db *gorm.DB) error {
		conflict, _ := db.Statement.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
		return refuseKept("Enqueue with an upsert", writesOf(conflict, t.fields, func(*schema.Field) bool { return true }))
	}
	tx = checked(tx, check)
	return tx, check(tx)
}
