package journal

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/statement"
)

// A commit behind a ROLLBACK in a text commits nothing, and the driver does not say so. The pool asks the journals of its own transactions
// before it commits. Nobody asks for others, so they are ended as soon as such a text is heard: their commit is sql.ErrTxDone.

// endUndone ends a transaction whose commit nobody can refuse, and which a text has rolled back.
func endUndone(stmt *gorm.Statement) {
	if tx := statement.Transaction(stmt); tx != nil {
		_ = tx.Rollback() // there is none on the server any more
	}
}

// RefuseCommit fails a text that would commit an aborted transaction, where gormlock does not hear what the server answers: that it has
// rolled it back. The commit of the program then says so.
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
