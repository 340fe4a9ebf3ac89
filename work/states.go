package work

import (
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/statement"
)

// known are the states that workers know.
var known = []string{ready, later, running, done, dead}

// refuseState refuses an update to a State that no worker knows.
func refuseState(stmt *gorm.Statement, set clause.Set) error {
	for _, a := range set {
		if stmt.Schema.LookUpField(a.Column.Name) != stmt.Schema.FieldsByName["State"] {
			continue
		}
		state, is := statement.TextOf(a.Value)
		switch {
		case a.Value == nil || is && state == "":
			return errNoState(stmt)
		case is && !slices.Contains(known, state):
			return errUnknownState(stmt, state)
		}
	}
	return nil
}

// refuseNewStates refuses to insert a job that no worker would take. An upserted job that was read has a row already.
func refuseNewStates(stmt *gorm.Statement, upserts bool) (err error) {
	field := stmt.Schema.FieldsByName["State"]
	if field == nil || !statement.ChosenFor(stmt, true).Has(field.DBName) {
		return nil
	}
	refuse := func(state string, isNew bool) {
		switch {
		case err != nil || state == "": // the table has a default
		case !slices.Contains(known, state):
			err = errUnknownState(stmt, state)
		case isNew && state == running:
			err = optionError("%s: a new job would be running, and no worker has it: leave its State unset, or make it ready", stmt.Schema.Table)
		}
	}
	eachJob(stmt, func(j *Job) { refuse(j.State, !upserts || !isRead(j)) })
	for _, values := range mapsOf(stmt.Dest) {
		for _, name := range []string{field.Name, field.DBName} {
			if state, is := statement.TextOf(values[name]); is {
				refuse(state, true)
			}
		}
	}
	return err
}

// mapsOf returns the maps that a create turns into rows.
func mapsOf(dest any) []map[string]any {
	switch of := dest.(type) {
	case map[string]any:
		return []map[string]any{of}
	case *map[string]any:
		return []map[string]any{*of}
	case []map[string]any:
		return of
	case *[]map[string]any:
		return *of
	}
	return nil
}

// isRead reports whether a job was read from its row.
func isRead(j *Job) bool { return j.ID != 0 && j.Version != 0 }

// refuseNoStates refuses an upsert of a job that was read and has no State.
func refuseNoStates(stmt *gorm.Statement) (err error) {
	eachJob(stmt, func(j *Job) {
		if j.Version != 0 && j.State == "" {
			err = errNoState(stmt)
		}
	})
	return err
}

func errNoState(stmt *gorm.Statement) error {
	return optionError("%s: the write would leave a job without a State, and no worker would ever take it: leave State out, or read the job before you save it", stmt.Schema.Table)
}

func errUnknownState(stmt *gorm.Statement, state string) error {
	return optionError("%s: the write would give a job the State %q, which no worker knows, so none would ever take it: a State is ready, later, running, done or dead", stmt.Schema.Table, state)
}
