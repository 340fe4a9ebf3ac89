package work

import (
	"fmt"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/statement"
)

// mustBeBare refuses a db that has conditions, locks or other parts of a statement, which the call would drop.
func mustBeBare(db *gorm.DB, call, cure string) error {
	if err := mark.RefuseGiven(db, "work: "+call, cure); err != nil {
		return optionRefusedError{fmt.Errorf("gormlock: %s", strings.TrimPrefix(err.Error(), gormlock.ErrOption.Error()+": "))}
	}
	return nil
}

// writesState is tx for writing the columns with which Complete completes a job. A Select or Omit that leaves one out is an error, even if a scope
// adds it.
func writesState(tx *gorm.DB, t *table) (*gorm.DB, error) {
	check := func(db *gorm.DB) error {
		if left := t.leftOut(db, false, "State", "ClaimedUntil"); left != "" {
			return optionError("Complete writes State and ClaimedUntil, and a Select or Omit of its tx leaves out %s: give it a tx without them", left)
		}
		return nil
	}
	tx = checked(statement.Beside(tx), check)
	return tx, check(tx)
}

// leftOut returns the first of these fields that a Select or Omit leaves out of a create or an update, or "".
func (t *table) leftOut(db *gorm.DB, creates bool, fields ...string) string {
	stmt := db.Statement
	if len(stmt.Selects)+len(stmt.Omits) == 0 {
		return ""
	}
	chosen := statement.ChosenFor(&gorm.Statement{DB: db, Schema: t.fields, Table: t.fields.Table, Selects: stmt.Selects, Omits: stmt.Omits}, creates)
	for _, field := range fields {
		if !chosen.Has(t.column(field)) {
			return field
		}
	}
	return ""
}

// checked is tx with a check that also sees what its scopes add. Without scopes it is tx.
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

// insertsOnly is tx for inserting jobs. An upsert that writes columns that workers maintain is an error, even if a scope adds it: it would hand out
// a running job again. So is a Select or Omit that leaves out a field that one of the jobs sets for the workers.
func insertsOnly(tx *gorm.DB, t *table, said sayings) (*gorm.DB, error) {
	check := func(db *gorm.DB) error {
		if err := t.refuseUnsaid(db, said); err != nil {
			return err
		}
		conflict, _ := db.Statement.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
		return refuseKept("Enqueue with an upsert", writesOf(conflict, t.fields, func(*schema.Field) bool { return true }))
	}
	tx = checked(tx, check)
	return tx, check(tx)
}

// forWorkers are the fields with which a job can tell the workers something. If such a field is left out, the table's default applies.
var forWorkers = []struct {
	field string
	says  func(*Job) bool
}{
	{"RunAt", func(j *Job) bool { return !j.RunAt.IsZero() }},
	{"State", func(j *Job) bool { return j.State == later }},
	{"Queue", func(j *Job) bool { return j.Queue != "default" }},
	{"Priority", func(j *Job) bool { return j.Priority != 0 }},
	{"Attempts", func(j *Job) bool { return j.Attempts != 0 }},
	{"MaxAttempts", func(j *Job) bool { return j.MaxAttempts != 0 }},
}

// sayings says which of forWorkers at least one of some jobs uses, one bit each.
type sayings uint8

// add adds the fields that a job uses.
func (s *sayings) add(j *Job) {
	for i := range forWorkers {
		if forWorkers[i].says(j) {
			*s |= 1 << i
		}
	}
}

// refuseUnsaid refuses a Select or Omit that leaves out a field that one of the jobs uses.
func (t *table) refuseUnsaid(db *gorm.DB, said sayings) error {
	for i, of := range forWorkers {
		if said&(1<<i) != 0 && t.leftOut(db, true, of.field) != "" {
			return optionError("Enqueue: a job has a %s for the workers, and a Select or Omit of tx leaves it out: name it, or give Enqueue a tx without them", of.field)
		}
	}
	return nil
}
