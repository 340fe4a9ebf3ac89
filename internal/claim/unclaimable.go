package claim

import (
	"errors"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

// unclaimable is a problem with the free rows that the server finds. Later claims would find the same rows again, so the statement fails.
type unclaimable struct{ sign, why string }

var (
	restless = unclaimable{
		"a row of the view is another one each time it is read",
		"the view has a column that is another one each time it is read, as by random() or clock_timestamp(), so nobody knows whether a row was changed: " +
			"claim rows of the table, or leave the column out of the view",
	}
	keyless = unclaimable{
		"a free row has NULL in its key",
		"a free row has NULL in the model's key, so no statement finds it, and it would stay before those behind it: " +
			"fill the column, leave such rows out in the scope, or declare a key without NULL",
	}
	vetoed = unclaimable{
		"a trigger left all free rows as they were",
		"a BEFORE UPDATE trigger returned NULL for each of the free rows, or left them as they were, so the next claim would find the same ones, and none behind them: " +
			"leave them out in the scope, or let the trigger return the row",
	}
)

// raise is an expression that fails when it is evaluated, because its text is no boolean. It contains value, which the planner cannot compute in
// advance.
func (u unclaimable) raise(value string) string {
	return "concat('gormlock: " + u.sign + ": '," + value + ")::boolean"
}

// verdict returns the error that the caller gets if the claim's statement fails with err.
func (c *claim) verdict(stmt *gorm.Statement, err error) error {
	for _, u := range []unclaimable{restless, keyless, vetoed} {
		if sqlstate.Of(err) == sqlstate.InvalidTextRepresentation && strings.Contains(err.Error(), u.sign) {
			return c.refused(stmt, errors.New(u.why))
		}
	}
	journal.Relearn(stmt, err)
	return c.text.lock.Verdict(stmt, err)
}
