package statement

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/sqltext"
)

// IsPostgres reports whether db speaks to PostgreSQL, or to a server that speaks like it.
func IsPostgres(db *gorm.DB) bool { return db.Name() == "postgres" }

// Transaction is the transaction the statement runs in, nil when there is none.
func Transaction(stmt *gorm.Statement) advisory.Tx {
	if tx, ok := Unprepared(stmt.ConnPool).(advisory.Tx); ok {
		return tx
	}
	return nil
}

// Unprepared is what lies under GORM's caches of prepared statements, which would prepare a text that is several
// statements. A session with PrepareStmt on a database with PrepareStmt is two of them.
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

// IsSavepoint reports whether the statement is one of those that GORM nests transactions with. They carry the clauses of
// the db the transaction began from; a lock asked for before ROLLBACK TO would fail in the transaction it is to save.
func IsSavepoint(stmt *gorm.Statement) bool {
	return stmt.SQL.Len() > 0 && sqltext.Read(stmt.SQL.String()).IsSavepoint()
}
