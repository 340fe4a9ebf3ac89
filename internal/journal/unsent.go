package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// isUnsentWayBack reports whether the rollback to the savepoint of a nested transaction was not sent, because the context has ended. GORM drops
// that error, and would commit the work of the nested transaction with the outer one.
func isUnsentWayBack(db *gorm.DB) bool {
	ended := db.Statement.Context.Err()
	return db.Error != nil && ended != nil && errors.Is(db.Error, ended) && sqltext.Read(db.Statement.SQL.String()).GoesBack() && statement.InNesting()
}

// sendWayBack sends the rollback to the savepoint. If that fails, the transaction can only be rolled back.
func (j *journal) sendWayBack(db *gorm.DB) {
	text := db.Statement.SQL.String()
	if j != nil && !j.hasSavepoint(sqltext.Read(text).Commands) {
		return // the savepoint was not set, because the context had ended before
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(db.Statement.Context), 5*time.Second)
	defer cancel()
	_, err := statement.Unprepared(db.Statement.ConnPool).ExecContext(ctx, text)
	switch {
	case err == nil:
		db.Error = nil
	case j != nil:
		j.Doom(fmt.Errorf("gormlock: a nested transaction was not rolled back, so this one can only be rolled back as a whole: %w", err))
	}
}

// hasSavepoint reports whether the savepoint to which a text goes back may have been set.
func (j *journal) hasSavepoint(commands []sqltext.Command) bool {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	return slices.ContainsFunc(commands, func(c sqltext.Command) bool {
		newest, _ := j.past.find(c.Name)
		return c.Verb == sqltext.RollbackTo && (newest >= 0 || j.past.unsure)
	})
}
