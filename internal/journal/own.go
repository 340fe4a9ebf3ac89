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

// End has end commit or roll back a statement's own transaction, if it has one, as the error of db says, and tells the journal that Adopt gave
// what became of it. Stays says that what was written is committed, or may be. A commit without an answer may be one, and its error says so.
func End(db *gorm.DB, end func(*gorm.DB)) (stays bool) {
	j := Of(db.Statement)
	alone, has := adopted.LoadAndDelete(db.Statement)
	if has && db.Error == nil { // as the pool asks for its own transactions
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

// doubts reports whether the commit of a statement's own transaction, which has failed, may have been one.
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
	case !j.isInDoubt(): // as the pool has seen
		return false
	}
	db.Statement.Settings.Store(inDoubt{}, nil)
	return true
}

// isUnanswered reports whether the error of a commit is neither what the server said, nor from before it was sent: then the ctx has its bare
// error.
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

// rolledBack is what pgx and lib/pq make of a commit that the server has answered with a rollback.
var rolledBack = []string{"commit unexpectedly resulted in rollback", "operation in a failed transaction"}

// inDoubt marks a statement whose own transaction may have been committed although it has failed.
type inDoubt struct{}

// Stays reports whether what a failed statement has written may be committed, until it calls Leave: it is not to be taken back.
func Stays(stmt *gorm.Statement) bool {
	_, stays := stmt.Settings.Load(inDoubt{})
	return stays
}
