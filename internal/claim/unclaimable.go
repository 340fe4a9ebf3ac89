package claim

import (
	"errors"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/sqlstate"
)

// unclaimable is what the server may find among the free rows, so that no claim gets any further. It ends the statement.
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

// raise is an expression that ends the statement where it is evaluated: its text is no boolean. It is made of what is only known by then.
func (u unclaimable) raise(value string) string {
	return "concat('gormlock: " + u.sign + ": '," + value + ")::boolean"
}

// verdict says what an error of the claim's statement means.
func (c *claim) verdict(stmt *gorm.Statement, err error) error {
	for _, u := range []unclaimable{restless, keyless, vetoed} {
		if sqlstate.Of(err) == sqlstate.InvalidTextRepresentation && strings.Contains(err.Error(), u.sign) {
			return c.refused(stmt, errors.New(u.why))
		}
	}
	return c.text.lock.Verdict(stmt, err)
}
