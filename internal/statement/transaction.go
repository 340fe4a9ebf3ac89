package statement

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/sqltext"
)

// IsPostgres reports whether db speaks to PostgreSQL, or to a server that speaks like it.
func IsPostgres(db *gorm.DB) bool { return db.Name() == "postgres" }

// Transaction is the transaction that the statement runs in, nil if there is none.
func Transaction(stmt *gorm.Statement) advisory.Tx {
	if tx, ok := Unprepared(stmt.ConnPool).(advisory.Tx); ok {
		return tx
	}
	return nil
}

// Unprepared is the pool under GORM's caches of prepared statements, which would try to prepare a text with several
// statements. A session with PrepareStmt on a database with PrepareStmt has two caches.
func Unprepared(pool gorm.ConnPool) gorm.ConnPool {
	for {
		switch over := pool.(type) {
		case *gorm.PreparedStmtTX:
			pool = over.Tx
		case *Columns:
			pool = over.ConnPool
		case *sending:
			pool = over.ConnPool
		default:
			return pool
		}
	}
}

// IsSavepoint reports whether the statement sets a savepoint or rolls back to one, as GORM does to nest transactions. Such statements carry
// the clauses of the db from which the transaction began. A lock taken before ROLLBACK TO would fail in the aborted transaction.
func IsSavepoint(stmt *gorm.Statement) bool {
	return stmt.SQL.Len() > 0 && sqltext.Read(stmt.SQL.String()).IsSavepoint()
}
