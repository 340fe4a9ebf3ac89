package journal

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/statement"
)

// Doom prevents the commit of the transaction of db. If gormlock does not see the commit, the server must refuse it. For that, one
// statement that fails is enough. A rollback to an earlier savepoint makes the transaction usable again.
func Doom(db *gorm.DB, err error) {
	if j := Of(db.Statement); j != nil {
		j.Doom(err)
		return
	}
	tx := statement.Transaction(db.Statement)
	if _, own := db.InstanceGet("gorm:started_transaction"); own || tx == nil || db.DryRun || !statement.IsPostgres(db) {
		return // GORM rolls its own back
	}
	_, _ = tx.ExecContext(db.Statement.Context, "SELECT 'gormlock: an earlier write was refused'::bigint")
}
