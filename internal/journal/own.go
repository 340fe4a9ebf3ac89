package journal

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/sqltx"
)

// End ends a statement's own transaction, if it has one: end commits it, or rolls it back if db has an error. End reports the outcome to the
// journal that Adopt gave. stays says that the writes are committed, or may be. If a commit got no answer they may be, and the error says so.
func End(db *gorm.DB, end func(*gorm.DB)) (stays bool) {
	j := Of(db.Statement)
	alone, has := adopted.LoadAndDelete(db.Statement)
	if has && db.Error == nil { // the pool does so for its own transactions
		if err := j.Commit(); err != nil {
			fault.Add(db, err)
		}
	}
	failed := db.Error != nil
	end(db)
	if stays = !failed; stays && db.Error != nil {
		stays = j.doubts(db)
	}
	if has {
		alone.(*journal).Ended(db.Error == nil) //nolint:forcetypeassert // Adopt stored it
	}
	return stays
}

// doubts reports whether the failed commit of a statement's own transaction may have committed it all the same.
func (j *journal) doubts(db *gorm.DB) bool {
	switch {
	case j == nil:
		if !isUnanswered(db, db.Error) {
			return false
		}
		db.Error = sqltx.InDoubt(db.Error)
	case j.deaf:
		if !isUnanswered(db, db.Error) {
			return false
		}
		j.InDoubt()
		db.Error = sqltx.InDoubt(db.Error)
	case !j.isInDoubt(): // the pool sees it
		return false
	}
	db.Statement.Settings.Store(inDoubt{}, nil)
	return true
}

// isUnanswered reports whether a commit was sent and got no answer. It did get one if the error is the server's. It was not sent if the error
// is the bare error of a context.
func isUnanswered(db *gorm.DB, err error) bool {
	switch {
	case err == nil, dialect.Of(db).IsSQLite():
		return false
	case sqlstate.Of(err) != "":
		return !sqlstate.TakesBack(err)
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, gorm.ErrInvalidTransaction), err == context.Canceled, err == context.DeadlineExceeded: //nolint:errorlint // a driver wraps what it returns
		return false
	}
	return !slices.ContainsFunc(rolledBack, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// rolledBack are texts in the errors of pgx and lib/pq if the server has answered a commit with a rollback.
var rolledBack = []string{"commit unexpectedly resulted in rollback", "operation in a failed transaction"}

// inDoubt marks a statement whose own transaction may have been committed although it has failed.
type inDoubt struct{}

// Stays reports whether the writes of a failed statement may be committed, so that they must not be undone in memory. It holds until Leave.
func Stays(stmt *gorm.Statement) bool {
	_, stays := stmt.Settings.Load(inDoubt{})
	return stays
}
