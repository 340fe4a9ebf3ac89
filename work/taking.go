package work

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/statement"
)

func init() { install.JobOf, install.RefuseJob = jobOf, refuseJob }

// completes is a setting that marks the statement with which Complete completes a job.
const completes = "gormlock:completes"

var jobType = reflect.TypeFor[isJob]()

// kept are the fields of Job that a worker writes.
var kept = []string{"State", "Attempts", "ClaimedBy", "ClaimedUntil", "LastError"}

func isJobs(s *schema.Schema) bool { return reflect.PointerTo(s.ModelType).Implements(jobType) }

// jobOf says which columns a statement must leave as they are in the row of a running job. It is nil if the model is not a job, and for the
// statement of Complete.
func jobOf(stmt *gorm.Statement) *install.Job {
	if _, own := stmt.Settings.Load(completes); own || !isJobs(stmt.Schema) || !statement.IsPostgres(stmt.DB) {
		return nil
	}
	s := stmt.Schema
	if s.FieldsByName["State"] == nil || s.FieldsByName["ClaimedBy"] == nil {
		return nil
	}
	return &install.Job{State: s.FieldsByName["State"], Claim: s.FieldsByName["ClaimedBy"], Running: running, Refusal: func(row string, runs bool) error {
		if !runs {
			return optionError("%s is not running, and a write of its struct would make it, which only a worker does: make its State ready to have it run, or leave the field as it is in the row", row)
		}
		return optionError("%s is running, and a write of its struct would make its State or ClaimedBy another one, which a worker keeps: let the handler return nil, an error, Later or Dead, "+
			"or call Complete, or leave the fields as they are in the row. To stop a job by hand, update it by conditions alone, without its struct", row)
	}}
}

// refuseJob refuses writes that are never right for a job: an upsert of columns that a worker maintains, and a State that no worker knows.
func refuseJob(stmt *gorm.Statement) error {
	if !isJobs(stmt.Schema) {
		return nil
	}
	if !slices.Contains(stmt.BuildClauses, "VALUES") {
		return refuseState(stmt, statement.Assignments(stmt))
	}
	conflict, upserts := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	if err := refuseNewStates(stmt, upserts); err != nil || !upserts || conflict.DoNothing {
		return err
	}
	chosen := statement.ChosenFor(stmt, false)
	writes := writesOf(conflict, stmt.Schema, func(f *schema.Field) bool { return chosen.Has(f.DBName) })
	// Other code compares these with their rows: structs that were read, a Save of a slice, and associations that are saved whole.
	if _, saves := stmt.Settings.Load("gorm:update_track_time"); (saves || allRead(stmt)) && len(conflict.Where.Exprs) == 0 {
		if writes("State") {
			return refuseNoStates(stmt)
		}
		return nil
	}
	return refuseKept("an upsert", writes)
}

// writesOf returns a function that reports whether an upsert writes a field of a row that it finds.
func writesOf(conflict clause.OnConflict, s *schema.Schema, chosen func(*schema.Field) bool) func(field string) bool {
	return func(name string) bool {
		field := s.LookUpField(name)
		assigns := func(a clause.Assignment) bool { return s.LookUpField(a.Column.Name) == field }
		return field != nil && (conflict.UpdateAll && chosen(field) || slices.ContainsFunc(conflict.DoUpdates, assigns))
	}
}

// refuseKept refuses an upsert that writes columns that workers maintain: the job that it finds may run, and would be handed out again.
func refuseKept(call string, writes func(field string) bool) error {
	for _, name := range kept {
		if writes(name) {
			return optionError("%s would write %s of a job that is there, which a worker keeps, and it may run: use clause.OnConflict{DoNothing: true}, or DoUpdates of columns of your own", call, name)
		}
	}
	return nil
}

// allRead reports whether all jobs of an upsert were read from their rows.
func allRead(stmt *gorm.Statement) bool {
	n, read := 0, 0
	eachJob(stmt, func(j *Job) {
		if n++; isRead(j) {
			read++
		}
	})
	return n > 0 && n == read
}

// eachJob calls f for the jobs of a statement. There are none in maps.
func eachJob(stmt *gorm.Statement, f func(*Job)) {
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if !row.CanAddr() {
			row = statement.CopyOf(row)
		}
		if has, _ := row.Addr().Interface().(isJob); has != nil && has.job() != nil {
			f(has.job())
		}
	})
}
