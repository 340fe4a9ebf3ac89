package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// unsentWayBack is the error of a nested transaction that GORM could not roll back, because its context has ended. GORM drops the error, and
// would commit with the outer transaction what the nested one did.
func unsentWayBack(db *gorm.DB) error {
	ended := db.Statement.Context.Err()
	if db.Error == nil || ended == nil || !errors.Is(db.Error, ended) || !sqltext.Read(db.Statement.SQL.String()).GoesBack() || !statement.InNesting() {
		return nil
	}
	return fmt.Errorf("gormlock: a nested transaction was not rolled back, because its context had ended: "+
		"this transaction can only be rolled back as a whole; gormlock.Transaction rolls nested ones back all the same: %w", ended)
}

// doom lets a transaction only be rolled back, whether gormlock sees its end or not.
func doom(db *gorm.DB, j *journal, err error) {
	if j != nil {
		j.Doom(err)
		return
	}
	if !statement.IsPostgres(db) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(db.Statement.Context), 5*time.Second)
	defer cancel()
	_, _ = db.Statement.ConnPool.ExecContext(ctx, "SELECT 'gormlock: a nested transaction was not rolled back'::bigint")
}
