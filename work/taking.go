package work

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/statement"
)

func init() { install.RefuseJob = refuseTaking }

// completes is the setting of the statement by which Complete completes a job.
const completes = "gormlock:completes"

var jobType = reflect.TypeFor[isJob]()

// refuseTaking refuses a write that takes a job from the worker which runs it, as its struct shows: the job would be handed out once more, or
// never again. A struct that was not read shows nothing, so statements with conditions alone stay possible.
func refuseTaking(stmt *gorm.Statement) (err error) {
	if !reflect.PointerTo(stmt.Schema.ModelType).Implements(jobType) {
		return nil
	}
	if _, own := stmt.Settings.Load(completes); own {
		return nil
	}
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		if !row.CanAddr() {
			row = statement.CopyOf(row)
		}
		has, _ := row.Addr().Interface().(isJob)
		if err != nil || has == nil || has.job() == nil || !has.job().isHeld() {
			return
		}
		if state, written := writtenState(stmt, has.job()); written && state != running {
			err = optionError("%s id=%d is running, and its struct would make its State %q, which this package keeps: let the handler return nil, an error, Later or Dead, or call Complete, "+
				"or leave the field as it was. To stop a job by hand, update it by conditions alone, without its struct", stmt.Schema.Table, has.job().ID, state)
		}
	})
	return err
}

// isHeld reports whether a worker runs the job, by what its struct held when it was read: a job that does not run has no lease. What the program
// has changed in the struct of a job that runs here does not hide it.
func (j *Job) isHeld() bool {
	if j.State == running || j.ClaimedUntil != nil {
		return true
	}
	a := claimed(j)
	return a != nil && !a.completing.Load()
}

// claimed returns the attempt of this process that the claim in a struct is of, nil if there is none.
func claimed(j *Job) (found *attempt) {
	if j.ClaimedBy == "" {
		return nil
	}
	runs.Range(func(_, run any) bool {
		e := run.(*engine) //nolint:forcetypeassert // stored by Worker.engine
		e.mu.Lock()
		defer e.mu.Unlock()
		if it := e.held[j.ID]; it != nil && it.claim == j.ClaimedBy {
			found = it.shared
		}
		return found == nil
	})
	return found
}

// writtenState is what the statement makes the State of a job, if it writes it.
func writtenState(stmt *gorm.Statement, j *Job) (state any, written bool) {
	field := stmt.Schema.FieldsByName["State"]
	if field == nil {
		return nil, false
	}
	var set clause.Set
	conflict, upserts := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	switch creates := slices.Contains(stmt.BuildClauses, "VALUES"); {
	case !creates:
		set = statement.Assignments(stmt)
	case upserts && conflict.UpdateAll:
		chosen, restricted := stmt.SelectAndOmitColumns(true, true)
		stored, named := chosen[field.DBName]
		return j.State, stored || !named && !restricted
	case upserts:
		set = conflict.DoUpdates
	}
	for _, a := range set {
		if stmt.Schema.LookUpField(a.Column.Name) == field {
			if state = a.Value; state == (clause.Column{Table: "excluded", Name: field.DBName}) {
				state = j.State
			}
			written = true
		}
	}
	return state, written
}
