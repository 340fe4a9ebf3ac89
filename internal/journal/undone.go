package journal

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// If a text has sent ROLLBACK, the commit that follows commits nothing, and the driver reports no error. The pool asks the journals of its own
// transactions before it commits. For other transactions nobody asks. So they are ended as soon as the journal hears of such a text, and their
// commit returns sql.ErrTxDone.

// endUndone ends a transaction that a text has rolled back, if gormlock cannot refuse its commit.
func endUndone(stmt *gorm.Statement) {
	if tx := statement.Transaction(stmt); tx != nil {
		_ = tx.Rollback() // the server has no transaction any more
	}
}

// RefuseCommit fails a text that would commit an aborted transaction, if gormlock does not hear the server's answer. The server would answer
// with a rollback. The text then stays unsent, so the commit of the program returns the error.
func RefuseCommit(db *gorm.DB) {
	stmt, tx := db.Statement, statement.Transaction(db.Statement)
	if db.Error != nil || db.DryRun || stmt.SQL.Len() == 0 || tx == nil || !statement.IsPostgres(db) {
		return
	}
	if j := Of(stmt); j != nil && !j.deaf {
		return
	}
	text := sqltext.Read(stmt.SQL.String())
	if len(text.Commands) == 0 || text.Commands[0].Verb != sqltext.Commit && text.Commands[0].Verb != sqltext.Detach {
		return
	}
	if _, err := tx.ExecContext(stmt.Context, "SELECT 1"); err != nil {
		fault.Add(db, err)
	}
}
