package xact

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/pretend"
)

// pretendTo takes the locks in memory, for the transaction tx. They end where its journal says that it has, or a savepoint
// before them. Only the database knows whether it is open still, so it is asked.
func pretendTo(db *gorm.DB, tx advisory.Tx, locks *pretend.Locks, request *lockrequest.Request) error {
	ctx := db.Statement.Context
	open := func() error {
		if _, err := tx.ExecContext(ctx, "SELECT 1"); err != nil {
			return request.Refused(ctx, err)
		}
		return nil
	}
	if err := open(); err != nil {
		return err
	}
	if _, own := db.InstanceGet("gorm:started_transaction"); own {
		journal.Adopt(db) // where its pool gave it no journal
	}
	j := journal.Of(db.Statement)
	if j == nil {
		return fmt.Errorf("%w: lock %s is pretended, and nothing would see this transaction end: begin it with gormlock.Transaction", fault.ErrNotPostgres, request)
	}
	free, err := request.Pretend(ctx, locks, j)
	if err != nil {
		return err
	}
	if !j.AtEnd(free) {
		free()
		if err := open(); err != nil {
			return err
		}
		return fmt.Errorf("%w: lock %s", fault.ErrNoTransaction, request)
	}
	return nil
}
