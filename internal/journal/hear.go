package journal

import (
	"errors"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/sqltx"
	"github.com/gormlock/gormlock/internal/statement"
)

// Hear tells a journal of a statement that GORM has executed, if the connection does not report it. Statements that the
// program sends on the *sql.Tx itself, past GORM, stay unheard.
func Hear(db *gorm.DB) { hear(db, db.RowsAffected) }

// HearRead is Hear for a statement that returns rows. If no row was read, the server may still have sent or written some.
func HearRead(db *gorm.DB) {
	rows := db.RowsAffected
	if rows == 0 {
		rows = -1
	}
	hear(db, rows)
}

// hear is given the number of rows that the text has written or sent; negative: it is not known.
func hear(db *gorm.DB, rows int64) {
	if db.DryRun || db.Statement.SQL.Len() == 0 {
		return
	}
	Relearn(db.Statement, db.Error)
	j := Of(db.Statement)
	if isUnsentWayBack(db) {
		j.sendWayBack(db)
	}
	switch {
	case j == nil:
		if j = talliedFor(db.Statement); j != nil {
			j.Executed(answered(db, rows))
		}
		hearOutside(db)
		return
	case !j.deaf:
		return
	}
	text, answer := answered(db, rows)
	j.Executed(text, answer)
	if j.alone && errors.Is(j.Commit(), errUndone) {
		endUndone(db.Statement)
	}
}

// answered is the text of a statement that GORM has executed, and its answer.
func answered(db *gorm.DB, rows int64) (text sqltext.Text, answer sqltx.Answer) {
	text, answer = sqltext.Read(db.Statement.SQL.String()), sqltx.Answer{Failed: db.Error != nil}
	if sqlstate.Of(db.Error) != "" && statement.IsPostgres(db) {
		answer.After = sqltx.Aborted
		if text.RollsBack(true) {
			answer.After = sqltx.Idle
		}
	}
	switch {
	case !text.Writes:
	case db.Error != nil && (sqlstate.TakesBack(db.Error) || fault.IsAdded(db.Statement)): // the server refused it, or it was never sent
		answer.Stored = !text.Single
	default:
		answer.Stored = !text.Counted || rows != 0 || db.Error != nil
	}
	return text, answer
}
