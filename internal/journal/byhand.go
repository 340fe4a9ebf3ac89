package journal

import (
	"database/sql"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/sqltx"
	"github.com/gormlock/gormlock/internal/statement"
)

// InTransaction reports whether the statement runs in a transaction, or may do: on one connection the program may have sent a
// BEGIN itself, which no object stands for. The driver knows, if it is pgx.
func InTransaction(stmt *gorm.Statement) bool {
	if statement.Transaction(stmt) != nil {
		return true
	}
	conn, one := onOne(stmt)
	return one && sqltx.StatusOf(conn) != sqltx.Idle
}

// BegunByHand reports whether the program is known to have begun a transaction itself. Another BEGIN would not nest in it, and
// its COMMIT would commit what the program did.
func BegunByHand(stmt *gorm.Statement) bool {
	conn, one := onOne(stmt)
	if !one {
		return false
	}
	status := sqltx.StatusOf(conn)
	return status == sqltx.Open || status == sqltx.Aborted
}

func onOne(stmt *gorm.Statement) (conn *sql.Conn, one bool) {
	conn, one = stmt.ConnPool.(*sql.Conn)
	return conn, one && conn != nil && !stmt.DryRun
}
